"""What holds the tools of all sources, and what each principal sees of them."""
