"""What every endpoint shares: who is calling, what they may do, how answers and errors look."""
