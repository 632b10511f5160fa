//! Profiles from options and the environment.

use super::*;
use crate::catalog::ModelCatalog;

fn resolve(json: serde_json::Value, variables: &[(&str, &str)]) -> Result<Profile, ModelError> {
    let lookup =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let around = ProfileContext { variable: &lookup, catalog: ModelCatalog::built_in(), helper: None };
    Profile::resolve("main", serde_json::from_value(json).unwrap(), &around)
}

fn refusal(json: serde_json::Value) -> String {
    let error = resolve(json, &[("ANTHROPIC_API_KEY", "k")]).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Configuration);
    error.message
}

fn key(text: &str) -> Credentials {
    Credentials::ApiKey(Secret::new(text))
}

#[test]
fn the_environment_alone_makes_a_profile() {
    let profile = resolve(
        serde_json::json!({}),
        &[
            ("ANTHROPIC_API_KEY", " key\n"),
            ("ANTHROPIC_AUTH_TOKEN", "token"),
            ("ANTHROPIC_BASE_URL", "http://localhost:8080/v1/"),
            ("ANTHROPIC_MODEL", "some-model"),
            ("OPENAI_API_KEY", "other"),
        ],
    )
    .unwrap();
    assert_eq!((profile.provider, profile.credentials.clone()), (Provider::Anthropic, key("key")));
    assert_eq!(profile.base_url, "http://localhost:8080");
    assert_eq!(profile.model, "some-model");
    assert_eq!((profile.max_tokens, profile.context_window), (16_000, 200_000));
    assert_eq!(profile.prices, None, "what an unknown model costs is unknown");
    assert_eq!(profile.retry_policy(), RetryPolicy::default());
    assert_eq!(profile.idle_timeout, Duration::from_secs(300));
}

#[test]
fn a_token_is_a_bearer_and_empty_variables_are_not_set() {
    let profile = resolve(
        serde_json::json!({}),
        &[
            ("ANTHROPIC_API_KEY", " "),
            ("ANTHROPIC_AUTH_TOKEN", "token"),
            ("ANTHROPIC_BASE_URL", ""),
            ("ANTHROPIC_MODEL", ""),
        ],
    )
    .unwrap();
    assert_eq!(profile.credentials, Credentials::Bearer(Secret::new("token")));
    assert_eq!(profile.base_url, DEFAULT_BASE_URL);
    assert_eq!(profile.model, DEFAULT_MODEL);
    assert_eq!((profile.max_tokens, profile.context_window), (32_000, 1_000_000));
    assert!(profile.prices.is_some() && !profile.capabilities.temperature);
}

#[test]
fn with_openais_key_alone_openai_is_asked() {
    for (variables, provider, base, model) in [
        (
            &[("OPENAI_API_KEY", "k")][..],
            Provider::OpenAiResponses,
            DEFAULT_OPENAI_BASE_URL,
            DEFAULT_OPENAI_MODEL,
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "https://llm.example"), ("OPENAI_MODEL", "m")],
            Provider::OpenAi,
            "https://llm.example/v1",
            "m",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "https://eu.api.openai.com/v1")],
            Provider::OpenAiResponses,
            "https://eu.api.openai.com/v1",
            DEFAULT_OPENAI_MODEL,
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://localhost:1/x/responses")],
            Provider::OpenAiResponses,
            "http://localhost:1/x",
            DEFAULT_OPENAI_MODEL,
        ),
    ] {
        let profile = resolve(serde_json::json!({}), variables).unwrap();
        let found = (profile.provider, profile.base_url.as_str(), profile.model.as_str());
        assert_eq!(found, (provider, base, model), "{variables:?}");
        assert_eq!(profile.credentials, key("k"));
    }
}

#[test]
fn without_a_key_the_error_says_where_one_could_be() {
    for (options, variables, expected) in [
        (serde_json::json!({}), &[][..], "ANTHROPIC_API_KEY"),
        (serde_json::json!({"provider": "openai", "model": "m"}), &[], "OPENAI_API_KEY"),
        (serde_json::json!({"provider": "deepseek", "model": "m"}), &[], "DEEPSEEK_API_KEY"),
        (
            serde_json::json!({"provider": "openai", "model": "m", "baseUrl": "https://other.example/v1"}),
            &[("OPENAI_API_KEY", "k")],
            "only sent to OpenAI",
        ),
    ] {
        let error = resolve(options, variables).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[test]
fn keys_of_the_environment_go_to_no_other_server() {
    let foreign = "https://other.example";
    let gateway = "https://gateway.example";
    for (secret, helper) in [
        (("ANTHROPIC_API_KEY", "k"), None),
        (("ANTHROPIC_AUTH_TOKEN", "k"), None),
        (("X", "x"), Some(KeyHelper { command: "print-key".into(), ttl: Duration::from_secs(1) })),
    ] {
        let variables = [secret, ("ANTHROPIC_BASE_URL", gateway)];
        let lookup =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let resolve = |options: serde_json::Value| {
            let helper = helper.clone();
            let around = ProfileContext { variable: &lookup, catalog: ModelCatalog::built_in(), helper };
            Profile::resolve("p", serde_json::from_value(options).unwrap(), &around)
        };
        for options in [
            serde_json::json!({"baseUrl": foreign}),
            serde_json::json!({"baseUrl": format!("{foreign}/v1/messages")}),
            serde_json::json!({"baseUrl": foreign, "provider": "anthropic"}),
            serde_json::json!({"baseUrl": format!("{gateway}.evil.example"), "provider": "anthropic"}),
            serde_json::json!({"baseUrl": "http://gateway.example", "provider": "anthropic"}),
        ] {
            let error = resolve(options.clone()).expect_err(&options.to_string());
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            for way in ["`apiKey`", "`apiKeyEnv`", "`apiKeyHelper`"] {
                assert!(error.message.contains(way), "{}", error.message);
            }
            let is_named = options.get("provider").is_some();
            assert_eq!(error.message.contains("`provider`"), !is_named, "{}", error.message);
        }
        for options in [
            serde_json::json!({}),
            serde_json::json!({"baseUrl": format!("{gateway}/v1")}),
            serde_json::json!({"baseUrl": "https://api.anthropic.com/v1/messages"}),
        ] {
            let profile = resolve(options.clone()).unwrap();
            let has_key = profile.credentials.secret().is_some() || profile.key_helper.is_some();
            assert!(has_key && profile.provider == Provider::Anthropic, "{options}");
        }
        let local = resolve(serde_json::json!({"baseUrl": "http://127.0.0.1:1"})).unwrap();
        assert_eq!((local.credentials, local.key_helper), (Credentials::None, None));
    }
}

#[test]
fn the_key_of_a_known_provider_goes_to_its_own_host_alone() {
    let variables =
        [("DEEPSEEK_API_KEY", "deep"), ("OPENROUTER_API_KEY", "router"), ("OPENAI_API_KEY", "open")];
    let with = |provider: &str, address: &str| serde_json::json!({"provider": provider, "baseUrl": address, "model": "m"});
    for address in ["https://api.deepseek.com/v1", "https://api.deepseek.com/beta/"] {
        assert_eq!(
            resolve(with("deepseek", address), &variables).unwrap().credentials,
            key("deep"),
            "{address}"
        );
    }
    for (provider, address, variable) in [
        ("deepseek", "https://other.example/v1", "DEEPSEEK_API_KEY is only sent to https://api.deepseek.com"),
        ("deepseek", "https://api.deepseek.com.evil.example/v1", "DEEPSEEK_API_KEY"),
        ("deepseek", "http://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        ("deepseek", "https://api.deepseek.com:8443/v1", "DEEPSEEK_API_KEY"),
        (
            "openrouter",
            "https://other.example/v1",
            "OPENROUTER_API_KEY is only sent to https://openrouter.ai",
        ),
    ] {
        let error = resolve(with(provider, address), &variables).expect_err(address);
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        for expected in [variable, "`apiKey`", "`apiKeyHelper`"] {
            assert!(error.message.contains(expected), "{address}: {}", error.message);
        }
        assert!(!error.message.contains("OPENAI_API_KEY"), "{}", error.message);
        let mut own = with(provider, address);
        own["apiKey"] = "own".into();
        assert_eq!(resolve(own, &variables).unwrap().credentials, key("own"), "{address}");
    }
    let local = resolve(with("deepseek", "http://127.0.0.1:1/v1"), &variables).unwrap();
    assert_eq!(local.credentials, Credentials::None);
}

#[test]
fn an_address_without_a_provider_is_taken_for_what_its_end_says() {
    for (address, expected) in [
        ("https://other.example", Provider::Anthropic),
        ("https://other.example/anthropic", Provider::Anthropic),
        ("https://other.example/v1/messages", Provider::Anthropic),
        ("https://api.anthropic.com/v1", Provider::Anthropic),
        ("https://gateway.example/team/v1", Provider::Anthropic),
        ("https://other.example/v1/", Provider::OpenAi),
        ("https://other.example/v1beta/openai", Provider::OpenAi),
        ("https://api.openai.com/v1", Provider::OpenAiResponses),
    ] {
        let options = serde_json::json!({"baseUrl": address, "apiKey": "k", "model": "m"});
        let profile = resolve(options, &[("ANTHROPIC_BASE_URL", "https://gateway.example/team")]).unwrap();
        assert_eq!(profile.provider, expected, "{address}");
    }
}

#[test]
fn keys_come_from_where_the_profile_says() {
    let variables = [("MINE", "mine"), ("ANTHROPIC_API_KEY", "k"), ("DEEPSEEK_API_KEY", "deep")];
    for (options, expected) in [
        (serde_json::json!({"apiKey": "own"}), key("own")),
        (serde_json::json!({"apiKey": "${MINE}"}), key("mine")),
        (serde_json::json!({"apiKey": "${NOT_SET:-spare}"}), key("spare")),
        (serde_json::json!({"apiKey": {"fromEnv": "MINE"}}), key("mine")),
        (serde_json::json!({"apiKey": {"value": "own"}}), key("own")),
        (serde_json::json!({"apiKeyEnv": "MINE"}), key("mine")),
        (serde_json::json!({"apiKey": ""}), key("k")),
        (serde_json::json!({"provider": "deepseek", "model": "m"}), key("deep")),
        (serde_json::json!({"provider": "ollama", "model": "m"}), Credentials::None),
        (
            serde_json::json!({"provider": "openai", "model": "m", "baseUrl": "http://127.0.0.1:1"}),
            Credentials::None,
        ),
        (serde_json::json!({"apiKeyHelper": "print-key"}), Credentials::None),
    ] {
        let profile = resolve(options.clone(), &variables).unwrap();
        assert_eq!(profile.credentials, expected, "{options}");
        assert_eq!(profile.key_helper.is_some(), options.get("apiKeyHelper").is_some(), "{options}");
    }
}

#[test]
fn options_win_over_the_environment_and_what_is_known() {
    let options = serde_json::json!({
        "provider": "anthropic", "baseUrl": "https://${HOST}/llm", "model": "claude-sonnet-5", "apiKeyEnv": "MY_KEY",
        "maxTokens": 100, "contextWindow": 1000, "effort": "high", "temperature": 0.5, "topP": 0.9,
        "headers": {"x-team": "${TEAM:-tools}"}, "maxRetries": 0, "idleTimeoutMs": 1000, "connectTimeoutMs": 2000,
        "capabilities": {"temperature": true, "images": false}, "prices": {"input": 1, "output": 2},
        "proxy": "none", "caCertificates": ["/etc/own.pem"], "fallback": "quick", "store": false,
    });
    let variables = [("MY_KEY", "mine"), ("ANTHROPIC_MODEL", "other"), ("HOST", "gateway.example")];
    let expected = Profile {
        name: "main".into(),
        provider: Provider::Anthropic,
        base_url: "https://gateway.example/llm".into(),
        model: "claude-sonnet-5".into(),
        credentials: key("mine"),
        max_tokens: 100,
        context_window: 1000,
        effort: Some(Effort::High),
        temperature: Some(0.5),
        top_p: Some(0.9),
        headers: BTreeMap::from([("x-team".into(), Secret::new("tools"))]),
        max_retries: 0,
        idle_timeout: Duration::from_secs(1),
        http: HttpOptions {
            proxy: kode_net::http::ProxyOption::None,
            ca_certificates: vec!["/etc/own.pem".into()],
            connect_timeout: Duration::from_secs(2),
        },
        capabilities: Capabilities { images: false, pdf: false, ..Capabilities::ALL },
        tools_are_set: false,
        prices: Some(Prices { input: 1.0, output: 2.0, cache_read: None, cache_write: None, above: None }),
        fallback: Some(Fallback {
            profile: "quick".into(),
            triggers: super::super::fallback::Trigger::usual(),
        }),
        store: false,
        ..Profile::demo()
    };
    assert_eq!(resolve(options, &variables).unwrap(), expected);
}

#[test]
fn kodes_names_are_understood() {
    let profile = resolve(
        serde_json::json!({
            "provider": "custom-openai", "modelName": "m", "baseURL": "https://x.example/v1/chat/completions",
            "apiKey": "k", "contextLength": 8000, "reasoningEffort": "low",
        }),
        &[],
    )
    .unwrap();
    assert_eq!((profile.provider, profile.base_url.as_str()), (Provider::OpenAi, "https://x.example/v1"));
    assert_eq!((profile.context_window, profile.max_tokens), (8000, 2000), "an answer leaves room to read");
    assert_eq!((profile.effort, profile.capabilities.thinking), (Some(Effort::Low), true));
}

#[test]
fn a_model_that_refuses_sampling_is_sent_none() {
    let options = serde_json::json!({"model": "claude-opus-5", "temperature": 0.5, "topP": 0.5});
    let profile = resolve(options, &[("ANTHROPIC_API_KEY", "k")]).unwrap();
    assert_eq!((profile.temperature, profile.top_p), (None, None));
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    for (json, expected) in [
        (serde_json::json!({"apiKeyEnv": "NOT_SET"}), "NOT_SET"),
        (serde_json::json!({"apiKey": "${NOT_SET}"}), "NOT_SET"),
        (serde_json::json!({"baseUrl": "${NOT_SET}"}), "NOT_SET"),
        (serde_json::json!({"headers": {"x-a": "${NOT_SET}"}}), "NOT_SET"),
        (serde_json::json!({"apiKey": "a\nb"}), "API key"),
        (serde_json::json!({"provider": "nobody"}), "deepseek"),
        (serde_json::json!({"provider": "openai", "apiKey": "k"}), "OPENAI_MODEL"),
        (serde_json::json!({"model": " "}), "model"),
        (serde_json::json!({"maxTokens": 0}), "maxTokens"),
        (serde_json::json!({"maxTokens": 3_000_000}), "contextWindow"),
        (serde_json::json!({"temperature": 2}), "temperature"),
        (serde_json::json!({"topP": -0.1}), "topP"),
        (serde_json::json!({"headers": {"bad name": "x"}}), "bad name"),
        (serde_json::json!({"headers": {"x-a": "line\nbreak"}}), "x-a"),
        (serde_json::json!({"prices": {"input": -1, "output": 1}}), "prices"),
        (serde_json::json!({"proxy": "proxy.example:1"}), "proxy"),
        (serde_json::json!({"caCertificates": ["own.pem"]}), "caCertificates"),
        (serde_json::json!({"idleTimeoutMs": 0}), "idleTimeoutMs"),
    ] {
        let message = refusal(json.clone());
        assert!(message.contains(expected), "{json}: {message}");
    }
    assert!(serde_json::from_value::<ProfileOptions>(serde_json::json!({"modle": "m"})).is_err());
}

#[test]
fn a_version_in_the_address_goes_with_every_request() {
    let options = serde_json::json!({
        "provider": "azure", "model": "m", "apiKey": "k",
        "baseUrl": "https://r.example/openai/v1/?api-version=preview",
    });
    let endpoint = resolve(options, &[]).unwrap().endpoint("/responses").unwrap();
    assert_eq!(endpoint.as_str(), "https://r.example/openai/v1/responses?api-version=preview");
}

#[test]
fn debug_output_shows_no_key() {
    let json = serde_json::json!({
        "apiKey": "hush", "headers": {"authorization": "hush"}, "proxy": "http://u:hush@p.example:1",
    });
    let options: ProfileOptions = serde_json::from_value(json.clone()).unwrap();
    let shown = format!("{options:?} {:?}", resolve(json, &[]).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn ollama_is_where_its_variable_says() {
    let ollama = serde_json::json!({"provider": "ollama", "model": "m"});
    for (host, expected) in [
        (None, "http://localhost:11434"),
        (Some("0.0.0.0"), "http://127.0.0.1:11434"),
        (Some("127.0.0.1:9999"), "http://127.0.0.1:9999"),
        (Some(":9999"), "http://127.0.0.1:9999"),
        (Some("http://gpu.example:8443/ollama/"), "http://gpu.example:8443/ollama"),
        (Some("https://gpu.example"), "https://gpu.example"),
    ] {
        let variables: Vec<_> = host.map(|host| ("OLLAMA_HOST", host)).into_iter().collect();
        let written = serde_json::json!({"apiKey": "k", "provider": "ollama", "model": "m"});
        let profile = resolve(written, &variables).unwrap();
        assert_eq!(profile.base_url, expected, "{host:?}");
        assert_eq!((profile.provider, profile.wire()), (Provider::Ollama, Wire::Ollama));
    }
    let local = resolve(ollama.clone(), &[]).unwrap();
    assert_eq!((local.context_window, local.window_source), (32_768, WindowSource::Assumed));
    let mut chosen = ollama;
    chosen["contextWindow"] = serde_json::json!(65_536);
    let chosen = resolve(chosen, &[]).unwrap();
    assert_eq!((chosen.context_window, chosen.window_source), (65_536, WindowSource::Configured));
}

#[test]
fn clouds_have_their_addresses_and_keys() {
    let resolved = |options: serde_json::Value, variables: &[(&str, &str)]| {
        let profile = resolve(options, variables);
        profile.map(|profile| (profile.provider, profile.base_url, profile.query, profile.credentials))
    };
    let bedrock = serde_json::json!({"provider": "bedrock", "model": "anthropic.claude-sonnet-5"});
    let region = ("AWS_REGION", "eu-west-1");
    let address = || "https://bedrock-runtime.eu-west-1.amazonaws.com".to_owned();
    let signed = Credentials::Aws { region: "eu-west-1".into(), profile: None };
    assert_eq!(resolved(bedrock.clone(), &[region]).unwrap(), (Provider::Bedrock, address(), None, signed));
    let token = [region, ("AWS_BEARER_TOKEN_BEDROCK", "t"), ("ANTHROPIC_API_KEY", "never")];
    assert_eq!(resolved(bedrock.clone(), &token).unwrap().3, key("t"));
    let error = resolved(bedrock.clone(), &[]).unwrap_err();
    assert!(error.message.contains("AWS_REGION"), "{}", error.message);
    let mut elsewhere = bedrock;
    elsewhere["baseUrl"] = serde_json::json!("https://gateway.example");
    let elsewhere = resolved(elsewhere, &token).unwrap().3;
    assert!(matches!(elsewhere, Credentials::Aws { .. }), "a token goes to AWS alone: {elsewhere:?}");

    let vertex = |model: &str| {
        let options =
            serde_json::json!({"provider": "vertex", "model": model, "project": "p", "location": "eu"});
        let profile = resolve(options, &[("ANTHROPIC_API_KEY", "never")]).unwrap();
        (profile.provider, profile.base_url, profile.key_helper.map(|helper| helper.command))
    };
    let gcloud = || Some("gcloud auth print-access-token".to_owned());
    let models = |publisher: &str| {
        format!(
            "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu/publishers/{publisher}/models"
        )
    };
    assert_eq!(vertex("claude-sonnet-5"), (Provider::Vertex, models("anthropic"), gcloud()));
    assert_eq!(vertex("gemini-3.8-flash"), (Provider::VertexGemini, models("google"), gcloud()));
    for base_url in ["https://gateway.example", "https://evil.example/googleapis.com"] {
        let options =
            serde_json::json!({"provider": "vertex", "model": "m", "project": "p", "baseUrl": base_url});
        let error = resolve(options, &[]).unwrap_err();
        assert!(error.message.contains("There is no API key for this server"), "{}", error.message);
    }

    let azure = |more: serde_json::Value| {
        let mut options = serde_json::json!({"provider": "azure", "model": "d"});
        for (name, value) in more.as_object().unwrap() {
            options[name] = value.clone();
        }
        let found = resolved(options, &[("AZURE_OPENAI_API_KEY", "k"), ("OPENAI_API_KEY", "never")]);
        found.map(|(provider, base, query, credentials)| (provider, base, query, credentials == key("k")))
    };
    let host = "https://r.openai.azure.com";
    let deployed = || format!("{host}/openai/deployments/d");
    let version = || Some("api-version=2024-10-21".to_owned());
    for (more, expected) in [
        (serde_json::json!({"baseUrl": host}), (Provider::AzureResponses, format!("{host}/openai/v1"), None)),
        (
            serde_json::json!({"baseUrl": format!("{host}/openai/v1/responses")}),
            (Provider::AzureResponses, format!("{host}/openai/v1"), None),
        ),
        (
            serde_json::json!({"baseUrl": host, "apiVersion": "2024-10-21"}),
            (Provider::Azure, deployed(), version()),
        ),
        (
            serde_json::json!({"baseUrl": format!("{host}/openai/deployments/d/chat/completions?api-version=2024-10-21")}),
            (Provider::Azure, deployed(), version()),
        ),
    ] {
        let (provider, base, query) = expected;
        assert_eq!(azure(more.clone()).unwrap(), (provider, base, query, true), "{more}");
    }
    assert!(azure(serde_json::json!({})).unwrap_err().message.contains("AZURE_OPENAI_ENDPOINT"));
    let foreign = azure(serde_json::json!({"baseUrl": "https://gateway.example"})).unwrap_err();
    assert!(foreign.message.contains("AZURE_OPENAI_API_KEY is only sent to"), "{}", foreign.message);
}

#[test]
fn a_key_may_be_in_a_file() {
    let folder = std::env::temp_dir().join(format!("kode-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("main");
    std::fs::write(&file, " secret\n").unwrap();
    let options =
        |path: &std::path::Path| serde_json::json!({"provider": "anthropic", "apiKey": {"fromFile": path}});
    assert_eq!(resolve(options(&file), &[]).unwrap().credentials, key("secret"));
    let home = [("HOME", folder.to_str().unwrap())];
    assert_eq!(resolve(options("~/main".as_ref()), &home).unwrap().credentials, key("secret"));
    std::fs::write(&file, "").unwrap();
    for path in [file.as_path(), "relative".as_ref(), "/nowhere/at/all".as_ref()] {
        let error = resolve(options(path), &[]).unwrap_err();
        assert!(error.message.contains(&path.display().to_string()), "{}", error.message);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_server_serves_wins_over_guesses_and_narrows_what_the_user_set() {
    use super::super::models::Serving;
    let window = |options: serde_json::Value, served: u64| {
        let mut profile = resolve(options, &[]).unwrap();
        profile.serve(Serving { context_window: Some(served), tools: Some(false) });
        (profile.context_window, profile.window_source == WindowSource::Served, profile.capabilities.tool_use)
    };
    let local = |more: serde_json::Value| {
        let mut options = serde_json::json!({"provider": "llamacpp", "model": "qwen3-coder"});
        for (name, value) in more.as_object().unwrap() {
            options[name] = value.clone();
        }
        options
    };
    let claims = |window: u64| local(serde_json::json!({"contextWindow": window, "maxTokens": 1000}));
    assert_eq!(window(local(serde_json::json!({})), 131_072), (131_072, true, false), "a guess is replaced");
    assert_eq!(window(local(serde_json::json!({})), 4_096), (4_096, true, false));
    assert_eq!(window(claims(200_000), 4_096), (4_096, true, false), "a claim is narrowed");
    assert_eq!(window(claims(8_192), 16_384), (8_192, false, false), "a choice is kept");
    let set = local(serde_json::json!({"capabilities": {"tools": true}}));
    assert!(window(set, 4_096).2, "what the user set of tools is kept");
}
