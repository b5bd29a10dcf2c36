"""What runs a compiled mask: metadata in, descriptor out, and attention on top. Needs torch and triton."""
