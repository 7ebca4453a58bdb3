"""How datasets lie in storage: the object store door, markers, the commit protocol, SQL."""
