"""Native components: how they are built, their types and their failures."""
