"""A language model of some thousand random numbers, as a file that llama.cpp serves.

Rule: the same file every time. It says nothing of sense, but everything around it is real.
"""

from pathlib import Path

import numpy
from gguf import GGUFWriter, TokenType

WIDTH, HEADS, INNER = 32, 2, 64


def write(path: Path, context: int) -> None:
    """Writes a model that was made for a context window of this many tokens. A token is a byte or a common word."""
    words = ["\u2581", "e", "t", "a", "o", "\u2581the", "\u2581a", "ing", "\u2581to", "\u2581of"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
    kinds += [TokenType.BYTE] * 256 + [TokenType.NORMAL] * len(words)
    scores = [0.0] * 3 + [-100.0] * 256 + [-float(rank) for rank in range(len(words))]

    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_vocab_size(len(tokens))

    random = numpy.random.default_rng(7)

    def noise(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.02).astype(numpy.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))

    noise("token_embd.weight", len(tokens), WIDTH)
    ones("output_norm.weight")
    noise("output.weight", len(tokens), WIDTH)
    ones("blk.0.attn_norm.weight")
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        noise(f"blk.0.{name}.weight", WIDTH, WIDTH)
    ones("blk.0.ffn_norm.weight")
    noise("blk.0.ffn_gate.weight", INNER, WIDTH)
    noise("blk.0.ffn_up.weight", INNER, WIDTH)
    noise("blk.0.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
