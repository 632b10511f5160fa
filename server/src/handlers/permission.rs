//! `agent/permission/*`.

use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::{HunkId, PermissionId};
use kode_engine::base::paths::AbsPath;
use kode_engine::permission::PromptAnswer;
use kode_engine::permission::rules::{Rule, RuleError};
use kode_protocol as wire;
use kode_protocol::ErrorKind;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Answers a prompt.
pub(crate) async fn respond(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::RespondPermissionParams = params.read()?;
    let attached = backend.attached(&params.session_id)?;
    let answer = PromptAnswer {
        allow: params.decision == wire::PermissionDecision::Allow,
        scope: convert::scope_from_wire(params.scope),
        feedback: params.feedback,
        updated_input: params.updated_input,
        rules: params.rules,
        hunks: params.hunks.map(|hunks| hunks.iter().map(|id| HunkId::from_external(id.as_str())).collect()),
        mode: params.mode.map(convert::mode_from_wire),
        by: backend.client_name(),
    };
    let id = PermissionId::from_external(params.permission_id.as_str());
    match attached {
        AttachedSession::Live(session) => session.requests().respond(&id, answer).map_err(error::respond),
        AttachedSession::Following(following) => following
            .respond(&id, answer)
            .await
            .map_err(|error| error::relay(error, ErrorKind::UnknownPermission)),
    }
}

/// Lists the prompts that wait.
pub(crate) async fn list(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListPermissionsResult, RequestError> {
    let params: wire::ListPermissionsParams = params.read()?;
    let sessions = match params.session_id {
        Some(id) => vec![backend.attached(&id)?],
        None => backend.agent()?.engine.all_attached(),
    };
    let prompts = sessions.iter().flat_map(|attached| {
        let (id, pending) = match attached {
            AttachedSession::Live(session) => (session.id().clone(), session.requests().permissions()),
            AttachedSession::Following(following) => (following.id().clone(), following.pending()),
        };
        pending.into_iter().map(move |prompt| convert::prompt(&id, prompt))
    });
    Ok(wire::ListPermissionsResult { permissions: prompts.collect() })
}

/// Lists the rules in force.
pub(crate) async fn rules(backend: &Backend, params: Params) -> Result<wire::ListRulesResult, RequestError> {
    let params: wire::ListRulesParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    session.gate().refresh().await;
    Ok(convert::rules::in_force(session.gate().rules_in_force()))
}

/// Writes a rule.
pub(crate) async fn add_rule(backend: &Backend, params: Params) -> Result<wire::AddRuleResult, RequestError> {
    let params: wire::AddRuleParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    if !matches!(params.scope, wire::Scope::Project | wire::Scope::User) {
        return Err(error::invalid_params("scope", "a rule is kept for `project` or for `user`"));
    }
    let rule = rule(&params.rule)?;
    let scope = convert::scope_from_wire(params.scope);
    let file =
        session.gate().add_rule(scope, convert::rules::behavior_from_wire(params.behavior), rule).await;
    file.map(|file| wire::AddRuleResult { file: file.to_string() }).map_err(|error| error::keep(&error))
}

/// Removes a rule.
pub(crate) async fn remove_rule(
    backend: &Backend,
    params: Params,
) -> Result<wire::RemoveRuleResult, RequestError> {
    let params: wire::RemoveRuleParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let (file, rule) = (path(&params.file)?, rule(&params.rule)?);
    let removed =
        session.gate().remove_rule(file, convert::rules::behavior_from_wire(params.behavior), rule).await;
    removed.map(|removed| wire::RemoveRuleResult { removed }).map_err(|error| error::keep(&error))
}

/// Says what would become of a call.
pub(crate) async fn explain(
    backend: &Backend,
    params: Params,
) -> Result<wire::ExplainPermissionResult, RequestError> {
    let params: wire::ExplainPermissionParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let mode = params.mode.map(|mode| convert::mode_from_wire(mode).name().to_owned());
    session.gate().refresh().await;
    let explained = session.gate().explain(&params.tool, params.input, mode).await;
    let explained = explained.map_err(|error| error::invalid_params("mode", &error.to_string()))?;
    Ok(convert::rules::explanation(explained))
}

fn rule(text: &str) -> Result<Rule, RequestError> {
    text.parse().map_err(|error: RuleError| error::invalid_params("rule", &error.to_string()))
}

fn path(text: &str) -> Result<AbsPath, RequestError> {
    AbsPath::new(text).map_err(|error| error::invalid_params("file", &error.to_string()))
}
