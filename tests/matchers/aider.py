"""The matcher of aider's search and replace blocks.

JSON lines `{text, old, new}` on standard input, one `{text}` for each on standard output; `text` is null for a refusal. The
first argument is the folder of packages. What the module imports beside the matcher is left out.
"""

import importlib.util
import json
import sys
import types
from pathlib import Path


def load(folder: Path) -> types.ModuleType:
    """The module of the matcher, with empty ones for what it imports."""
    for name in ["aider", "aider.utils", "aider.dump", "aider.coders", "aider.coders.base_coder", "aider.coders.editblock_prompts"]:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["aider"].utils = sys.modules["aider.utils"]
    sys.modules["aider.dump"].dump = lambda *_: None
    sys.modules["aider.coders.base_coder"].Coder = object
    sys.modules["aider.coders.editblock_prompts"].EditBlockPrompts = object
    file = folder / "matchers-packages/aider/aider/coders/editblock_coder.py"
    spec = importlib.util.spec_from_file_location("aider.coders.editblock_coder", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    matcher = load(Path(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        is_crlf = "\r\n" in request["text"]
        # Its reader gives it line feeds alone.
        whole, old, new = (request[name].replace("\r\n", "\n") for name in ("text", "old", "new"))
        text = matcher.replace_most_similar_chunk(whole, old, new)
        if text is not None and is_crlf:
            text = text.replace("\n", "\r\n")
        print(json.dumps({"text": text}), flush=True)


if __name__ == "__main__":
    main()
