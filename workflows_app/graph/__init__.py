"""A workflow as a picture: blocks in layers, edges between them."""
