"""The agent in a plain LSP client: nothing but what the Language Server Protocol has, and the custom methods."""

from lsprotocol import types as lsp

from harness import call, say


def at(line: int, start: int, end: int | None = None) -> lsp.Range:
    return lsp.Range(lsp.Position(line, start), lsp.Position(line, start if end is None else end))


async def test_the_handshake(connect):
    editor = await connect()
    capabilities = editor.told.capabilities
    assert editor.told.server_info.name == "kode-ls"
    assert capabilities.position_encoding == lsp.PositionEncodingKind.Utf16
    assert capabilities.text_document_sync.open_close
    assert capabilities.text_document_sync.change == lsp.TextDocumentSyncKind.Incremental
    assert {"kode.ask", "kode.cancel"} <= set(capabilities.execute_command_provider.commands)


async def test_incremental_changes_count_utf16_units(connect, serve, project):
    model = serve(call("Read", file_path="{{cwd}}/emoji.py"), say("Read."))
    editor = await connect(model)
    uri = (project / "emoji.py").as_uri()
    editor.open(uri, 'face = "🙂🙂"  # häh\nlast = 1\n')
    editor.change(uri, lsp.TextEdit(at(0, 10, 12), "😎𝄞"))
    editor.change(uri, lsp.TextEdit(at(0, 20, 21), "e"), lsp.TextEdit(at(1, 7, 8), "2\nend = 3"))
    assert editor.text(uri) == 'face = "🙂😎𝄞"  # heh\nlast = 2\nend = 3\n'

    await editor.execute("kode.ask", text="Read it.")
    await editor.until(lambda: editor.messages)
    [shown] = model.results()
    for line in editor.text(uri).splitlines():
        assert line in shown


async def test_an_allowed_edit_reaches_the_open_document(connect, serve, project):
    path = project / "greeting.py"
    path.write_text('GREETING = "Helo"\n', "utf-8")
    model = serve(
        call("Read", file_path=str(path)),
        call("Edit", file_path=str(path), old_string="Helo", new_string="Hello 🙂"),
        say("The greeting is fixed."),
    )
    editor = await connect(model)
    uri = path.as_uri()
    editor.open(uri, path.read_text("utf-8"))
    editor.change(uri, lsp.TextEdit(at(0, 0), "# 🙂 mine\n"))

    started = await editor.execute("kode.ask", text="Fix the greeting.")
    assert started["sessionId"] and started["turnId"]
    question = await editor.answer("Allow once")
    assert "greeting.py" in question and "Hello" in question
    await editor.until(lambda: editor.messages)

    assert editor.text(uri) == '# 🙂 mine\nGREETING = "Hello 🙂"\n'
    assert path.read_text("utf-8") == 'GREETING = "Helo"\n', "saving is the user's"
    assert len(editor.edits) == 1 and editor.edits[0].label
    assert [message.message for message in editor.messages] == ["The greeting is fixed."]
    progress = [type(report).__name__ for reports in editor.progress_reports.values() for report in reports]
    assert progress[0] == "WorkDoneProgressBegin" and progress[-1] == "WorkDoneProgressEnd"


async def test_a_denied_edit_changes_nothing(connect, serve, project):
    path = project / "greeting.py"
    path.write_text("Helo\n", "utf-8")
    model = serve(
        call("Read", file_path=str(path)),
        call("Edit", file_path=str(path), old_string="Helo", new_string="Hello"),
        say("As you like."),
    )
    editor = await connect(model)
    editor.open(path.as_uri(), "Helo\n")
    await editor.execute("kode.ask", text="Fix the greeting.")
    await editor.answer("Deny")
    await editor.until(lambda: editor.messages)
    assert editor.text(path.as_uri()) == "Helo\n"
    assert path.read_text("utf-8") == "Helo\n"
    assert editor.edits == []


async def test_custom_requests_and_events(connect, serve, project):
    path = project / "notes.txt"
    model = serve(call("Write", file_path=str(path), content="new\n"), say("Written."))
    editor = await connect(model, plugin={"protocolVersion": 1, "events": True, "permissionUi": True})
    answer = await editor.request("agent/session/new")
    session = answer.sessionId
    prompt = [{"type": "text", "text": "Write a note."}]
    turn = (await editor.request("agent/turn/start", sessionId=session, input=prompt)).turnId

    def event(kind: str):
        return next((params.event for params in editor.events if params.event.type == kind), None)

    asked = await editor.until(lambda: event("permission_required"))
    await editor.request(
        "agent/permission/respond",
        sessionId=session,
        permissionId=asked.prompt.permissionId,
        decision="allow",
        scope="once",
    )
    done = await editor.until(lambda: event("done"))
    assert (done.turnId, done.stopReason) == (turn, "end_turn")
    assert path.read_text("utf-8") == "new\n"
    assert {params.sessionId for params in editor.events} == {session}
    sequence = [params.bookmark.seq for params in editor.events]
    assert sequence == sorted(set(sequence))
