//! Hooks of programs that use this engine as a library: functions instead of commands.
//!
//! Rule: the layers run in their order (template, tool, agent), and within a layer hooks run in the order in which they
//! were added, each after the one before; each sees what those before it have made of the call. A refusal ends the chain.
//! They run before the hooks of settings files, and what they change is checked as what those change is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::timeout;

use kode_base::call::ToolError;
use kode_base::ids::{AgentId, CallId, SessionId};
use kode_tool::ToolOutput;

/// The most time of one hook; after it the hook is ignored.
const LIMIT: Duration = Duration::from_secs(60);

/// The layer of a hook: general ones run before specific ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookLayer {
    /// Hooks of all agents of a kind.
    Template,
    /// Hooks of single tools.
    ToolTune,
    /// Hooks of this agent.
    Agent,
}

/// A call that a hook checks.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The sub-agent that makes the call; `None` for the session's own conversation.
    pub agent: Option<&'a AgentId>,
    /// The call.
    pub call: &'a CallId,
    /// The tool's canonical name.
    pub tool: &'a str,
    /// The arguments, as the hooks before have left them.
    pub input: &'a Value,
}

/// The decision of a hook before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PreCallDecision {
    /// Nothing.
    #[default]
    Continue,
    /// No question is needed; rules that deny or ask apply nevertheless.
    Allow,
    /// The user is asked.
    Ask {
        /// Why.
        reason: String,
    },
    /// The call does not run, and no other hook is asked.
    Deny {
        /// Why, for the model.
        reason: String,
    },
    /// The call runs with these arguments, if they may run.
    Update {
        /// All arguments.
        input: Value,
    },
}

/// A hook's changes of a result; `None` leaves a part as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PostUpdate {
    /// The text for the model.
    pub model_text: Option<String>,
    /// The text for people.
    pub display: Option<String>,
    /// The result for machines.
    pub structured: Option<Value>,
    /// More text for the model, also where the call failed.
    pub context: Option<String>,
}

/// Checks calls of tools before and after they run.
#[async_trait]
pub trait ToolHook: Send + Sync {
    /// Whether it checks calls of a tool.
    fn wants(&self, _tool: &str) -> bool {
        true
    }

    /// Is asked before a call is judged in full.
    async fn pre_tool_use(&self, _call: HookCall<'_>) -> PreCallDecision {
        PreCallDecision::Continue
    }

    /// Receives the result as the hooks before have left it.
    async fn post_tool_use(
        &self,
        _call: HookCall<'_>,
        _result: &Result<ToolOutput, ToolError>,
    ) -> PostUpdate {
        PostUpdate::default()
    }
}

/// The hooks of a program, in their order.
#[derive(Clone, Default)]
pub struct HookChain(Vec<(HookLayer, Arc<dyn ToolHook>)>);

/// The decision of the chain before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChainReply {
    /// The strictest decision.
    pub(crate) decision: PreCallDecision,
    /// The arguments, where one has changed them.
    pub(crate) input: Option<Value>,
}

impl fmt::Debug for HookChain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(layer, _)| layer)).finish()
    }
}

impl HookChain {
    /// Adds a hook behind all others of its layer.
    pub fn add(&mut self, layer: HookLayer, hook: Arc<dyn ToolHook>) {
        let at = self.0.partition_point(|(known, _)| *known <= layer);
        self.0.insert(at, (layer, hook));
    }

    /// Whether no hook exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Asks all, up to the first that refuses.
    pub(crate) async fn before(&self, call: HookCall<'_>) -> ChainReply {
        let mut chained = ChainReply::default();
        for (layer, hook) in self.0.iter().filter(|(_, hook)| hook.wants(call.tool)) {
            let now = HookCall { input: chained.input.as_ref().unwrap_or(call.input), ..call };
            let said = timeout(LIMIT, hook.pre_tool_use(now)).await.unwrap_or_else(|_| {
                tracing::warn!(?layer, tool = call.tool, "a hook of the program took too long");
                PreCallDecision::Continue
            });
            match said {
                PreCallDecision::Continue => {}
                PreCallDecision::Update { input } => chained.input = Some(input),
                PreCallDecision::Allow if chained.decision == PreCallDecision::Continue => {
                    chained.decision = PreCallDecision::Allow;
                }
                PreCallDecision::Allow => {}
                PreCallDecision::Ask { .. } if matches!(chained.decision, PreCallDecision::Ask { .. }) => {}
                PreCallDecision::Ask { reason } => chained.decision = PreCallDecision::Ask { reason },
                PreCallDecision::Deny { reason } => {
                    return ChainReply { decision: PreCallDecision::Deny { reason }, input: None };
                }
            }
        }
        chained
    }

    /// Passes a result to all hooks, one after the other. Returns more texts for the model.
    pub(crate) async fn after(
        &self,
        call: HookCall<'_>,
        result: &mut Result<ToolOutput, ToolError>,
    ) -> Vec<String> {
        let mut contexts = Vec::new();
        for (layer, hook) in self.0.iter().filter(|(_, hook)| hook.wants(call.tool)) {
            let Ok(update) = timeout(LIMIT, hook.post_tool_use(call, result)).await else {
                tracing::warn!(?layer, tool = call.tool, "a hook of the program took too long");
                continue;
            };
            contexts.extend(update.context);
            if let Ok(output) = result {
                if let Some(text) = update.model_text {
                    output.model_text = text;
                }
                if let Some(display) = update.display {
                    output.display = display;
                }
                output.structured = update.structured.or(output.structured.take());
            }
        }
        contexts
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    /// Counts its calls, and returns a fixed decision.
    struct Scripted {
        name: &'static str,
        says: PreCallDecision,
        update: PostUpdate,
        asked: Arc<Mutex<Vec<String>>>,
    }

    #[async_trait]
    impl ToolHook for Scripted {
        async fn pre_tool_use(&self, call: HookCall<'_>) -> PreCallDecision {
            self.asked.lock().unwrap().push(format!("{} {}", self.name, call.input));
            self.says.clone()
        }

        async fn post_tool_use(&self, _call: HookCall<'_>, _: &Result<ToolOutput, ToolError>) -> PostUpdate {
            self.update.clone()
        }
    }

    #[derive(Default)]
    struct Bench {
        chain: HookChain,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Bench {
        fn add(&mut self, layer: HookLayer, name: &'static str, says: PreCallDecision, update: PostUpdate) {
            let asked = Arc::clone(&self.asked);
            self.chain.add(layer, Arc::new(Scripted { name, says, update, asked }));
        }

        async fn before(&self) -> (ChainReply, Vec<String>) {
            let (session, call) = (SessionId::generate(), CallId::generate());
            let input = json!({ "v": 0 });
            let call = HookCall { session: &session, agent: None, call: &call, tool: "Read", input: &input };
            let chained = self.chain.before(call).await;
            (chained, self.asked.lock().unwrap().clone())
        }
    }

    #[tokio::test]
    async fn layers_come_in_their_order_and_each_sees_what_the_one_before_made_of_the_arguments() {
        use HookLayer::{Agent, Template, ToolTune};
        let mut bench = Bench::default();
        let update = |v: i32| PreCallDecision::Update { input: json!({ "v": v }) };
        bench.add(Agent, "agent", PreCallDecision::Continue, PostUpdate::default());
        bench.add(Template, "first", update(1), PostUpdate::default());
        bench.add(ToolTune, "tool", PreCallDecision::Allow, PostUpdate::default());
        bench.add(Template, "second", update(2), PostUpdate::default());
        let (chained, asked) = bench.before().await;
        assert_eq!(asked, ["first {\"v\":0}", "second {\"v\":1}", "tool {\"v\":2}", "agent {\"v\":2}"]);
        assert_eq!(chained, ChainReply { decision: PreCallDecision::Allow, input: Some(json!({ "v": 2 })) });
    }

    #[tokio::test]
    async fn a_refusal_ends_the_chain_and_a_question_outweighs_a_yes() {
        use HookLayer::Template;
        let reason = |text: &str| text.to_owned();
        let mut bench = Bench::default();
        bench.add(Template, "asks", PreCallDecision::Ask { reason: reason("why") }, PostUpdate::default());
        bench.add(Template, "allows", PreCallDecision::Allow, PostUpdate::default());
        let (chained, _) = bench.before().await;
        assert_eq!(chained.decision, PreCallDecision::Ask { reason: reason("why") });
        bench.add(Template, "denies", PreCallDecision::Deny { reason: reason("no") }, PostUpdate::default());
        bench.add(Template, "never asked", PreCallDecision::Allow, PostUpdate::default());
        bench.asked.lock().unwrap().clear();
        let (chained, asked) = bench.before().await;
        assert_eq!(chained.decision, PreCallDecision::Deny { reason: reason("no") });
        assert_eq!(asked.len(), 3, "{asked:?}");
    }

    #[tokio::test]
    async fn what_two_hooks_change_of_a_result_both_takes_effect() {
        let mut bench = Bench::default();
        let text = PostUpdate { model_text: Some("text".into()), ..PostUpdate::default() };
        let data =
            PostUpdate { structured: Some(json!(1)), context: Some("more".into()), ..PostUpdate::default() };
        bench.add(HookLayer::Agent, "text", PreCallDecision::Continue, text);
        bench.add(HookLayer::Agent, "data", PreCallDecision::Continue, data);
        let mut result = Ok(ToolOutput { display: "shown".into(), ..ToolOutput::default() });
        let (session, call) = (SessionId::generate(), CallId::generate());
        let input = json!({});
        let call = HookCall { session: &session, agent: None, call: &call, tool: "Read", input: &input };
        let contexts = bench.chain.after(call, &mut result).await;
        let output = result.unwrap();
        assert_eq!(
            (&*output.model_text, &*output.display, output.structured),
            ("text", "shown", Some(json!(1)))
        );
        assert_eq!(contexts, ["more"]);
    }
}
