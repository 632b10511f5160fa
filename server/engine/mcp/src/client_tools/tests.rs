//! Lists of tools that a client registers: names, bounds and faults.

use serde_json::json;

use super::*;

/// A client that carries out nothing.
struct NoClient;

impl ToolClient for NoClient {
    fn call(&self, _call: ClientToolCall) -> BoxFuture<'static, Result<Value, String>> {
        Box::pin(async { Err("it carries out nothing".to_owned()) })
    }
}

fn tools() -> ClientTools {
    ClientTools::new(Arc::new(NoClient))
}

fn spec(name: &str) -> ClientToolSpec {
    ClientToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({ "type": "object" }).into(),
    }
}

fn names_of(tools: &ClientTools) -> Vec<&'static str> {
    tools.tools().iter().map(|tool| tool.facts().name).collect()
}

#[test]
fn a_list_replaces_that_of_its_provider_and_an_empty_one_withdraws_it() {
    let tools = tools();
    assert_eq!(
        tools.register("my.ext", vec![spec("b"), spec("a")]),
        Ok(vec!["mcp__my_ext__b", "mcp__my_ext__a"])
    );
    assert_eq!(tools.register("other", vec![spec("a")]), Ok(vec!["mcp__other__a"]));
    assert_eq!(names_of(&tools), ["mcp__my_ext__a", "mcp__my_ext__b", "mcp__other__a"]);
    assert!(tools.find("mcp__my_ext__b").is_some());
    assert_eq!(tools.register("my.ext", vec![spec("c")]), Ok(vec!["mcp__my_ext__c"]));
    assert_eq!(tools.register("other", vec![]), Ok(vec![]));
    assert_eq!(names_of(&tools), ["mcp__my_ext__c"]);
    assert!(tools.find("mcp__my_ext__b").is_none());
}

#[test]
fn names_that_are_written_alike_stay_apart() {
    let tools = tools();
    let first = tools.register("a.b", vec![spec("x")]).unwrap();
    let second = tools.register("a-b", vec![spec("x"), spec("x!")]).unwrap();
    let third = tools.register("a_b", vec![spec("x")]).unwrap();
    let all: BTreeSet<_> = first.into_iter().chain(second).chain(third).collect();
    assert_eq!(all.len(), 4, "{all:?}");
}

#[test]
fn a_list_with_a_fault_changes_nothing() {
    let tools = tools();
    tools.register("p", vec![spec("a")]).unwrap();
    let broken = ClientToolSpec { schema: json!({ "type": "object", "properties": 3 }).into(), ..spec("b") };
    let list = ClientToolSpec { schema: json!({ "type": "array" }).into(), ..spec("b") };
    let large = json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA) });
    let many: Vec<_> = (0..=MAX_TOOLS).map(|number| spec(&number.to_string())).collect();
    for (specs, part) in [
        (vec![spec("a"), spec("a")], "two tools are called `a`"),
        (vec![spec("")], "is no name"),
        (vec![spec("a\n")], "is no name"),
        (vec![broken], "the schema of `b`"),
        (vec![list], "its `type` is not"),
        (vec![ClientToolSpec { schema: large.into(), ..spec("b") }], "bytes"),
        (many, "at most"),
    ] {
        let fault = tools.register("p", specs).unwrap_err().to_string();
        assert!(fault.contains(part), "{fault}");
        assert_eq!(names_of(&tools), ["mcp__p__a"]);
    }
    for number in 1..MAX_PROVIDERS {
        tools.register(&format!("p{number}"), vec![spec("a")]).unwrap();
    }
    assert_eq!(tools.register("one more", vec![spec("a")]), Err(ClientToolFault::TooMany));
    assert!(tools.register("p", vec![spec("z")]).is_ok(), "a known one is replaced");
}
