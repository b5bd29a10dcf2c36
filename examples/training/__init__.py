"""What the training examples share: a decoder in the shape of Qwen3-8B, and steps of it timed with several engines."""
