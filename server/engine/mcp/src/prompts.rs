//! Prompts of servers: texts that they put together from arguments, for the user to begin with.
//!
//! Rule: a prompt is requested by the user only; missing required arguments are reported before
//! the server is asked.

use rmcp::model::GetPromptRequestParams;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{Servers, failure, result};
use kode_config::mcp::fault::McpFailure;
use kode_tool::offer::{McpPromptPart, PromptArgument, PromptInfo};

impl Servers {
    /// The prompts there are, by server and name.
    #[must_use]
    pub fn prompts(&self) -> Vec<PromptInfo> {
        let of = |server: std::sync::Arc<crate::servers::server::McpServer>| {
            let (offered, part, name) = (server.offered(), server.part.clone(), server.name.clone());
            let prompts = offered.prompts.clone();
            prompts.into_iter().map(move |prompt| PromptInfo {
                server: name.clone(),
                command: format!("mcp__{part}__{}", prompt.name),
                description: prompt.description.or(prompt.title).unwrap_or_default(),
                arguments: prompt
                    .arguments
                    .unwrap_or_default()
                    .into_iter()
                    .map(|argument| PromptArgument {
                        name: argument.name,
                        description: argument.description.unwrap_or_default(),
                        required: argument.required.unwrap_or(false),
                    })
                    .collect(),
                name: prompt.name,
            })
        };
        self.all().into_iter().flat_map(of).collect()
    }

    /// Has a server put a prompt together. `arguments` are by name; those given without a name come in the prompt's order.
    ///
    /// # Errors
    /// The reason of the failure: no such prompt, an argument that is missing, or what the server says.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &[(Option<String>, String)],
    ) -> Result<Vec<McpPromptPart>, McpFailure> {
        let found = self.find(server)?;
        let known = self.prompts().into_iter().find(|known| known.server == server && known.name == name);
        let known = known.ok_or_else(|| {
            McpFailure::permanent(
                format!("the MCP server `{server}` has no prompt `{name}`"),
                "`/mcp` says which it has.",
            )
        })?;
        let params = GetPromptRequestParams::new(name).with_arguments(named(&known, arguments)?);
        let way = found.way().await?;
        let limit = found.surroundings().limits.call;
        let got = timeout(limit, way.peer.get_prompt(params)).await.map_err(|_| {
            McpFailure::transient(
                format!("`{server}` did not give the prompt within {} s", limit.as_secs_f32()),
                "Try it again.",
            )
        })?;
        let got = got.map_err(|error| failure::of_request(server, &error))?;
        let parts = got.messages.into_iter().flat_map(|message| {
            let (text, images) = result::reported(vec![message.content]);
            let text = (!text.is_empty()).then_some(McpPromptPart::Text(text));
            text.into_iter().chain(images.into_iter().map(McpPromptPart::Image))
        });
        Ok(parts.collect())
    }
}

fn named(prompt: &PromptInfo, given: &[(Option<String>, String)]) -> Result<Map<String, Value>, McpFailure> {
    let mut arguments = Map::new();
    let mut unnamed = Vec::new();
    for (name, value) in given {
        match name {
            Some(name) if prompt.arguments.iter().any(|known| known.name == *name) => {
                arguments.insert(name.clone(), Value::String(value.clone()));
            }
            Some(name) => unnamed.push(format!("{name}={value}")),
            None => unnamed.push(value.clone()),
        }
    }
    let open: Vec<_> =
        prompt.arguments.iter().filter(|known| !arguments.contains_key(&known.name)).cloned().collect();
    let mut rest = unnamed.into_iter();
    for (at, argument) in open.iter().enumerate() {
        let value = match at + 1 == open.len() {
            // The last one takes all that is left.
            true => Some(rest.by_ref().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty()),
            false => rest.next(),
        };
        match value {
            Some(value) => drop(arguments.insert(argument.name.clone(), Value::String(value))),
            None if argument.required => {
                return Err(McpFailure::permanent(
                    format!("the prompt `{}` needs `{}`", prompt.name, argument.name),
                    match argument.description.as_str() {
                        "" => "Write it behind the command.".to_owned(),
                        description => format!("Write it behind the command: {description}"),
                    },
                ));
            }
            None => {}
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt() -> PromptInfo {
        let argument =
            |name: &str, required| PromptArgument { name: name.into(), description: String::new(), required };
        PromptInfo {
            server: "s".into(),
            name: "p".into(),
            command: "mcp__s__p".into(),
            description: String::new(),
            arguments: vec![argument("city", true), argument("style", false)],
        }
    }

    fn of(given: &[(Option<&str>, &str)]) -> Result<Value, String> {
        let given: Vec<_> =
            given.iter().map(|(name, value)| (name.map(str::to_owned), (*value).to_owned())).collect();
        named(&prompt(), &given).map(Value::Object).map_err(|failure| failure.message)
    }

    #[test]
    fn arguments_go_by_name_or_in_their_order_and_the_last_takes_the_rest() {
        assert_eq!(of(&[(None, "Bern")]), Ok(json!({ "city": "Bern" })));
        assert_eq!(
            of(&[(None, "Bern"), (None, "very"), (None, "short")]),
            Ok(json!({ "city": "Bern", "style": "very short" }))
        );
        assert_eq!(of(&[(Some("style"), "x"), (None, "Bern")]), Ok(json!({ "style": "x", "city": "Bern" })));
        assert!(of(&[(Some("style"), "x")]).unwrap_err().contains("needs `city`"));
    }
}
