"""What a RayJob leaves behind, by its deletion policy: a table of rows, and what each is expected to come to."""
