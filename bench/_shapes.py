"""Architectures of the models with random weights that benches train on GPUs, as LlamaConfig takes
them."""

SMALL = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
SMALL |= {"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49_152}
"""SmolLM2-135M's."""
LARGE = {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28}
LARGE |= {"num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151_936}
"""1.5 billion parameters."""
