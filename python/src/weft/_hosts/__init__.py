"""OS processes that run processes of this program."""
