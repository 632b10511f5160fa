//! The language server as a program: the table of methods, standard input and output.
//!
//! Rule: work that `initialize` does not need is not done before it.

mod capabilities;
mod language_server;

use std::process::ExitCode;
use std::sync::Arc;

use tower_lsp::{Client, ClientSocket, LspService};

use crate::backend::Backend;
use crate::handlers::{
    ask, catalogue, checkpoint, complete, config, context, document, draft, edits, focus, mcp, models,
    permission, progress, question, queue, session, sessions, task, tools, transfer, turn,
};
use crate::{runtime, transport};

/// The server with all its methods. The table is flat: one line, one method.
#[must_use]
pub fn service() -> (LspService<Backend>, ClientSocket) {
    service_of(Backend::new)
}

/// The same around a backend that is made from its client.
pub(crate) fn service_of(make: impl FnOnce(Client) -> Backend) -> (LspService<Backend>, ClientSocket) {
    LspService::build(make)
        .custom_method(transport::message::TOO_LARGE, document::too_large)
        .custom_method("agent/session/new", session::new)
        .custom_method("agent/session/list", sessions::list)
        .custom_method("agent/session/rename", sessions::rename)
        .custom_method("agent/session/archive", sessions::archive)
        .custom_method("agent/session/delete", sessions::delete)
        .custom_method("agent/session/search", sessions::search)
        .custom_method("agent/session/load", session::load)
        .custom_method("agent/session/takeOver", session::take_over)
        .custom_method("agent/session/items", session::items)
        .custom_method("agent/subagent/load", session::load_sub_agent)
        .custom_method("agent/session/close", session::close)
        .custom_method("agent/session/fork", transfer::fork)
        .custom_method("agent/session/export", transfer::export)
        .custom_method("agent/session/import", transfer::import)
        .custom_method("agent/session/configure", session::configure)
        .custom_method("agent/usage/get", session::usage)
        .custom_method("agent/session/compact", context::compact)
        .custom_method("agent/context/get", context::get)
        .custom_method("agent/context/window", context::window)
        .custom_method("agent/turn/start", turn::start)
        .custom_method("agent/session/ask", ask::ask)
        .custom_method("agent/complete", complete::complete)
        .custom_method("agent/turn/cancel", turn::cancel)
        .custom_method("agent/turn/retry", turn::retry)
        .custom_method("agent/attachment/read", session::read_attachment)
        .custom_method("agent/tool/cancel", turn::cancel_call)
        .custom_method("agent/permission/respond", permission::respond)
        .custom_method("agent/permission/list", permission::list)
        .custom_method("agent/permission/rules", permission::rules)
        .custom_method("agent/permission/addRule", permission::add_rule)
        .custom_method("agent/permission/removeRule", permission::remove_rule)
        .custom_method("agent/permission/explain", permission::explain)
        .custom_method("agent/config/get", config::get)
        .custom_method("agent/config/set", config::set)
        .custom_method("agent/trust/list", config::trust_list)
        .custom_method("agent/trust/approve", config::trust_approve)
        .custom_method("agent/trust/revoke", config::trust_revoke)
        .custom_method("agent/trust/dismiss", config::trust_dismiss)
        .custom_method("agent/trust/workspace", config::trust_workspace)
        .custom_method("agent/client/focus", focus::report)
        .custom_method("agent/client/leave", focus::leave)
        .custom_method("agent/queue/update", queue::update)
        .custom_method("agent/draft/set", draft::set)
        .custom_method("agent/question/respond", question::respond)
        .custom_method("agent/todos/list", question::todos)
        .custom_method("agent/edits/list", edits::list)
        .custom_method("agent/edits/resolve", edits::resolve)
        .custom_method("agent/edits/review", edits::review)
        .custom_method("agent/edits/propose", edits::propose)
        .custom_method("agent/edits/revert", edits::revert)
        .custom_method("agent/document/baseline", document::baseline)
        .custom_method("agent/document/proposed", document::proposed)
        .custom_method("agent/checkpoint/list", checkpoint::list)
        .custom_method("agent/checkpoint/restore", checkpoint::restore)
        .custom_method("agent/tasks/list", task::list)
        .custom_method("agent/tasks/stop", task::stop)
        .custom_method("agent/tasks/background", task::move_to_background)
        .custom_method("agent/team/send", task::send)
        .custom_method("agent/output/read", task::read)
        .custom_method("agent/tools/list", catalogue::tools)
        .custom_method("agent/tools/register", tools::register)
        .custom_method("agent/models/list", catalogue::models)
        .custom_method("agent/models/discover", models::discover)
        .custom_method("agent/setup/providers", models::providers)
        .custom_method("agent/setup/try", models::attempt)
        .custom_method("agent/setup/save", models::save)
        .custom_method("agent/agents/list", catalogue::agents)
        .custom_method("agent/hooks/list", catalogue::hooks)
        .custom_method("agent/mcp/list", mcp::list)
        .custom_method("agent/mcp/tools", mcp::tools)
        .custom_method("agent/mcp/reconnect", mcp::reconnect)
        .custom_method("agent/mcp/authenticate", mcp::authenticate)
        .custom_method("agent/mcp/enable", mcp::enable)
        .custom_method("agent/mcp/disable", mcp::disable)
        .custom_method("agent/styles/list", catalogue::styles)
        .custom_method("agent/doctor", catalogue::doctor)
        .custom_method("agent/commands/list", catalogue::commands)
        .custom_method("workspace/textDocumentContent", document::content)
        .custom_method("window/workDoneProgress/cancel", progress::cancel)
        .finish()
}

/// Serves one client on standard input and output until it leaves.
///
/// # Errors
/// When the runtime cannot start.
pub fn main() -> anyhow::Result<ExitCode> {
    let ended = runtime::run(async {
        let (service, socket) = service();
        let lifecycle = Arc::clone(&service.inner().connection().lifecycle);
        runtime::end_on_signal(&lifecycle);
        let (input, output) = transport::stdio::open()?;
        Ok(transport::serve(input, output, service, socket, &lifecycle).await)
    })?;
    Ok(ended.into())
}
