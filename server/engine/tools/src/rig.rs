//! A workspace in a temporary folder with an editor in memory, and the tools that work on its files.
//!
//! Rule: a call has its changes applied as the pipeline does it.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use crate::{apply_patch, bash, edit, multi_edit, notebook_edit, read, write};
use kode_base::call::ToolError;
use kode_base::ids::CallId;
use kode_process::shell::Shell;
use kode_testing::text::Rig;
use kode_text::edit::ChangeSet;
use kode_text::workspace::Workspace;
use kode_tool::report::report;
use kode_tool::{CallAction, CallContext, Registry, ToolOutput};

/// A temporary workspace with its editor and its tools.
pub(crate) struct ToolRig {
    pub(crate) context: CallContext,
    tools: Registry,
    rig: Rig,
}

impl Deref for ToolRig {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl ToolRig {
    /// An empty workspace.
    pub(crate) fn new() -> Self {
        let rig = Rig::new();
        let mut tools = Registry::default();
        tools.add(apply_patch::ApplyPatch);
        tools.add(bash::Bash);
        tools.add(edit::Edit);
        tools.add(multi_edit::MultiEdit);
        tools.add(notebook_edit::NotebookEdit);
        tools.add(read::Read);
        tools.add(write::Write);
        let context = context(&rig, Arc::clone(rig.workspace()));
        Self { context, tools, rig }
    }

    /// Another session on the same files.
    pub(crate) fn other_context(&self) -> CallContext {
        context(&self.rig, self.rig.other_session())
    }

    /// Calls a tool and has its changes applied, as the pipeline does.
    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(&self.context, tool, input).await
    }

    pub(crate) async fn call_in(
        &self,
        context: &CallContext,
        tool: &str,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        match self.tools.find(tool).unwrap().plan(input, context).await?.action {
            CallAction::Run(run) => run(context.clone()).await,
            CallAction::Change(change) => {
                let (summary, removals) = (change.summary.clone(), change.removals.clone());
                let applied = context.workspace.apply(change, &context.cancel).await?;
                for removal in &removals {
                    // The ledger's owner does it in a session.
                    std::fs::remove_file(removal.target.file().unwrap()).unwrap();
                }
                Ok(report(&summary, &applied, &removals, &context.workspace))
            }
            CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Team(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => {
                panic!("{tool} wants a session")
            }
        }
    }

    /// The change set a call would have applied.
    pub(crate) async fn plan(&self, tool: &str, input: Value) -> ChangeSet {
        match self.tools.find(tool).unwrap().plan(input, &self.context).await.unwrap().action {
            CallAction::Change(change) => change,
            CallAction::Run(_)
            | CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Team(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => {
                panic!("{tool} plans no change")
            }
        }
    }
}

fn context(rig: &Rig, workspace: Arc<Workspace>) -> CallContext {
    CallContext {
        call_id: CallId::generate(),
        workspace,
        shell: Arc::new(Shell::new(rig.root().clone())),
        sandbox: None,

        resolved: kode_base::paths::ResolvedPaths::default(),
        agents: Arc::default(),
        catalog: Arc::default(),
        private_hosts: Arc::default(),
        may_read: Arc::new(|_, _| true),
        text_limit: None,
        ask: None,
        cancel: rig.cancel.clone(),
        progress: Arc::new(|_| {}),
    }
}
