"""`make openapi`: public documents of real size, folded, searched, and called before a judge."""
