"""Pure: quantities, effective requests, events and moments, typed views of objects, versions, gates."""
