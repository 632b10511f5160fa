//! The language server as a program: the table of methods, standard input and output.
//!
//! Rule: work that `initialize` does not need is not done before it.

mod capabilities;
mod language_server;

use std::process::ExitCode;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tower_lsp::{Client, ClientSocket, LspService};

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;
use crate::handlers::{
    ask, catalogue, checkpoint, complete, config, context, document, draft, edits, focus, mcp, method_table,
    models, permission, progress, question, queue, session, sessions, task, tools, transfer, turn,
};
use crate::{runtime, transport};

/// A request of the table. All have this type: the router compiles 3 KB for each type of method.
type Method = for<'a> fn(&'a Backend, Params) -> BoxFuture<'a, Result<Value, RequestError>>;

/// The requests beyond those of LSP. The table is flat: one line, one method.
const METHODS: &[(&str, Method)] = method_table! {
    "agent/session/new" => session::new,
    "agent/session/list" => sessions::list,
    "agent/session/rename" => sessions::rename,
    "agent/session/archive" => sessions::archive,
    "agent/session/delete" => sessions::delete,
    "agent/session/search" => sessions::search,
    "agent/session/load" => session::load,
    "agent/session/takeOver" => session::take_over,
    "agent/session/items" => session::items,
    "agent/subagent/load" => session::load_sub_agent,
    "agent/session/close" => session::close,
    "agent/session/fork" => transfer::fork,
    "agent/session/export" => transfer::export,
    "agent/session/import" => transfer::import,
    "agent/session/configure" => session::configure,
    "agent/usage/get" => session::usage,
    "agent/session/compact" => context::compact,
    "agent/context/get" => context::get,
    "agent/context/window" => context::window,
    "agent/turn/start" => turn::start,
    "agent/session/ask" => ask::ask,
    "agent/complete" => complete::complete,
    "agent/turn/cancel" => turn::cancel,
    "agent/turn/retry" => turn::retry,
    "agent/attachment/read" => session::read_attachment,
    "agent/tool/cancel" => turn::cancel_call,
    "agent/permission/respond" => permission::respond,
    "agent/permission/list" => permission::list,
    "agent/permission/rules" => permission::rules,
    "agent/permission/addRule" => permission::add_rule,
    "agent/permission/removeRule" => permission::remove_rule,
    "agent/permission/explain" => permission::explain,
    "agent/config/get" => config::get,
    "agent/config/set" => config::set,
    "agent/trust/list" => config::trust_list,
    "agent/trust/approve" => config::trust_approve,
    "agent/trust/revoke" => config::trust_revoke,
    "agent/trust/dismiss" => config::trust_dismiss,
    "agent/trust/workspace" => config::trust_workspace,
    "agent/client/focus" => focus::report,
    "agent/client/leave" => focus::leave,
    "agent/queue/update" => queue::update,
    "agent/draft/set" => draft::set,
    "agent/question/respond" => question::respond,
    "agent/todos/list" => question::todos,
    "agent/edits/list" => edits::list,
    "agent/edits/resolve" => edits::resolve,
    "agent/edits/review" => edits::review,
    "agent/edits/propose" => edits::propose,
    "agent/edits/revert" => edits::revert,
    "agent/document/baseline" => document::baseline,
    "agent/document/proposed" => document::proposed,
    "agent/checkpoint/list" => checkpoint::list,
    "agent/checkpoint/restore" => checkpoint::restore,
    "agent/tasks/list" => task::list,
    "agent/tasks/stop" => task::stop,
    "agent/tasks/background" => task::move_to_background,
    "agent/team/send" => task::send,
    "agent/output/read" => task::read,
    "agent/tools/list" => catalogue::tools,
    "agent/tools/register" => tools::register,
    "agent/models/list" => catalogue::models,
    "agent/models/discover" => models::discover,
    "agent/setup/providers" => models::providers,
    "agent/setup/try" => models::attempt,
    "agent/setup/save" => models::save,
    "agent/agents/list" => catalogue::agents,
    "agent/hooks/list" => catalogue::hooks,
    "agent/mcp/list" => mcp::list,
    "agent/mcp/tools" => mcp::tools,
    "agent/mcp/reconnect" => mcp::reconnect,
    "agent/mcp/authenticate" => mcp::authenticate,
    "agent/mcp/enable" => mcp::enable,
    "agent/mcp/disable" => mcp::disable,
    "agent/styles/list" => catalogue::styles,
    "agent/doctor" => catalogue::doctor,
    "agent/commands/list" => catalogue::commands,
    "workspace/textDocumentContent" => document::content,
};

fn answer(outcome: Result<impl Serialize, RequestError>) -> Result<Value, RequestError> {
    serde_json::to_value(outcome?).map_err(|unwritable| error::internal(&unwritable.to_string()))
}

/// The server with all its methods.
#[must_use]
pub fn service() -> (LspService<Backend>, ClientSocket) {
    service_of(Backend::new)
}

/// The same around a backend that is made from its client.
pub(crate) fn service_of(make: impl FnOnce(Client) -> Backend) -> (LspService<Backend>, ClientSocket) {
    let mut builder = LspService::build(make)
        .custom_method(transport::message::TOO_LARGE, document::too_large)
        .custom_method("window/workDoneProgress/cancel", progress::cancel);
    for (name, method) in METHODS {
        builder = builder.custom_method(name, *method);
    }
    builder.finish()
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
