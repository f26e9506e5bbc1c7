"""Native components: building them, their types, their failures."""
