"""The shared books: who owns whom, who holds quota, who pays for which pod, what is booked. Rules only read them."""
