"""Small roots as earlier releases wrote them, which the code of today must read."""
