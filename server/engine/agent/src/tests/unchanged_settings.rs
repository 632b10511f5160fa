//! Settings of which the system says that nothing has happened to them.
//!
//! Rule: no file is asked for then, and whatever else a refresh publishes is published.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use kode_config::policy::{Policy, PolicySource};
use kode_config::settings::TrustRequest;

/// One policy, called unchanged while the test says so.
#[derive(Clone, Default)]
struct TestPolicy {
    policy: Arc<Policy>,
    is_vouched: Arc<AtomicBool>,
    /// How often the files were asked for.
    looks: Arc<AtomicUsize>,
}

impl PolicyProvider for TestPolicy {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(self.clone())
    }
}

impl PolicySource for TestPolicy {
    fn current(&self) -> Arc<Policy> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Arc::clone(&self.policy)
    }

    fn unchanged(&self) -> Option<Arc<Policy>> {
        self.is_vouched.load(Ordering::SeqCst).then(|| Arc::clone(&self.policy))
    }
}

#[tokio::test]
async fn unchanged_settings_are_not_asked_for_and_other_news_are_published() {
    let home = tempfile::tempdir().unwrap();
    let folder = AbsPath::new(home.path()).unwrap();
    let source = TestPolicy::default();
    let bench = Bench::with_policies(home, vec![], Registry::default(), Arc::new(source.clone()));
    let new = NewSession { roots: vec![folder.clone()], mode: Some(Mode::Default), model: None };
    let session = bench.engine.new_session(new).unwrap();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("whatever a turn reads is read")).unwrap();
    until(&mut events, is_done).await;
    let gate = session.gate();
    let looks = || source.looks.load(Ordering::SeqCst);

    let known = gate.refreshed().await;
    let before = looks();
    gate.refresh().await;
    assert!(looks() > before, "nothing is said about the files");
    source.is_vouched.store(true, Ordering::SeqCst);
    let before = looks();
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&gate.refreshed().await, &known));
    }
    assert_eq!(looks(), before);

    let file = folder.join("SKILL.md");
    let request = TrustRequest { root: folder, file, key: "skill".into(), text: "!`date`".into() };
    gate.set_extension_requests(vec![request]);
    assert!(gate.trust_waiting().is_none());
    gate.refresh().await;
    assert!(gate.trust_waiting().is_some(), "the new request is published");
    let before = looks();
    gate.refresh().await;
    assert_eq!(looks(), before);
}
