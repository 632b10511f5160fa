//! `agent/session/fork`, `export` and `import`.

use kode_engine::agent::engine::ForkError;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::{ItemId, SessionId};
use kode_engine::base::paths::AbsPath;
use kode_protocol as wire;
use kode_protocol::Uri;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::documents::file_path;
use crate::handlers::params::Params;
use crate::handlers::session::DEFAULT_ITEMS;
use crate::handlers::source::SessionSource;

/// Forks a session.
pub(crate) async fn fork<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::NewSessionResult, S::Error> {
    let params: wire::ForkSessionParams = params.read()?;
    let item = |id: wire::ItemId| ItemId::from_external(id.as_str());
    let at = match (params.after_item_id, params.before_item_id) {
        (None, None) => ForkPoint::End,
        (Some(after), None) => ForkPoint::After(item(after)),
        (None, Some(before)) => ForkPoint::Before(item(before)),
        (Some(_), Some(_)) => {
            let reason = "`afterItemId` is given as well; a session is forked in one place";
            return Err(error::invalid_params("beforeItemId", reason).into());
        }
    };
    let engine = source.engine()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let session = source.fork(&id, at).await.map_err(|problem| match problem {
        ForkError::Session(problem) => S::refusal(problem),
        ForkError::Item(problem) => error::invalid_params("itemId", &problem.to_string()).into(),
    })?;
    Ok(wire::NewSessionResult {
        session_id: convert::session_id(session.id()),
        snapshot: convert::snapshot(&engine.models(), session.snapshot(DEFAULT_ITEMS), source.names()),
    })
}

/// Gives a session as a document.
pub(crate) async fn export(
    backend: &Backend,
    params: Params,
) -> Result<wire::ExportSessionResult, RequestError> {
    let params: wire::ExportSessionParams = params.read()?;
    let agent = backend.agent()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let exported = agent.engine.export_session(&agent.folders(), &id).await.map_err(error::session)?;
    Ok(convert::transfer::exported(exported, params.format))
}

/// Makes a session from the folder of an agent of the Kode SDK.
pub(crate) async fn import(
    backend: &Backend,
    params: Params,
) -> Result<wire::ImportSessionResult, RequestError> {
    let params: wire::ImportSessionParams = params.read()?;
    let agent = backend.agent()?;
    let from = folder(&params.from, "from")?;
    let named = params.workspace_folder.map(|uri| folder(&uri, "workspaceFolder")).transpose()?;
    let none = || error::session(kode_engine::agent::engine::SessionError::NoFolder);
    let root = named.or_else(|| agent.folders().into_iter().next()).ok_or_else(none)?;
    let imported = agent.engine.import_session(&root, from.as_path()).await.map_err(error::import)?;
    Ok(convert::transfer::imported(imported))
}

fn folder(uri: &Uri, name: &str) -> Result<AbsPath, RequestError> {
    let parsed = lsp_types::Url::parse(uri.as_str()).ok();
    let folder = parsed.as_ref().and_then(file_path).filter(|folder| folder.as_path().is_dir());
    folder.ok_or_else(|| error::invalid_params(name, &format!("{uri} is not a folder on this machine")))
}
