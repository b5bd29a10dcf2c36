"""cmir inside of other libraries; each is imported when its module is, and is an extra of its own."""
