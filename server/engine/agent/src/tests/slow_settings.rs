//! A disk that takes its time with the settings of one session.

use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use kode_config::policy::{Policy, PolicySource};

/// So long a look is held up at most: a test that fails is to end.
const HELD_LIMIT: Duration = Duration::from_secs(60);

/// Settings that are slow to check in one folder, as long as the test says so.
#[derive(Clone)]
struct Slow {
    folder: AbsPath,
    held: Arc<(Mutex<bool>, Condvar)>,
    /// Told when a look is held up.
    waits: Arc<tokio::sync::Notify>,
    /// How often anybody has looked.
    looks: Arc<AtomicUsize>,
}

struct Source {
    policy: Arc<Policy>,
    slow: Option<Slow>,
}

impl Slow {
    fn of(folder: &AbsPath) -> Self {
        let (held, waits, looks) = Default::default();
        Self { folder: folder.clone(), held, waits, looks }
    }

    fn set(&self, is_held: bool) {
        *self.held.0.lock().unwrap() = is_held;
        self.held.1.notify_all();
    }
}

impl PolicyProvider for Slow {
    fn of(&self, roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        let slow = roots.contains(&self.folder).then(|| self.clone());
        Arc::new(Source { policy: Arc::default(), slow })
    }
}

impl PolicySource for Source {
    fn current(&self) -> Arc<Policy> {
        if let Some(slow) = &self.slow {
            slow.looks.fetch_add(1, Ordering::SeqCst);
            let (is_held, changed) = &*slow.held;
            let mut is_held = is_held.lock().unwrap();
            if *is_held {
                slow.waits.notify_one();
            }
            while *is_held {
                let (now, waited) = changed.wait_timeout(is_held, HELD_LIMIT).unwrap();
                assert!(!waited.timed_out(), "nobody goes on while the settings are looked at");
                is_held = now;
            }
        }
        Arc::clone(&self.policy)
    }
}

#[tokio::test]
async fn settings_that_are_slow_to_inspect_hold_up_nobody_but_who_needs_them() {
    let home = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        std::fs::create_dir(home.path().join(name)).unwrap();
        AbsPath::new(home.path().join(name)).unwrap()
    };
    let (slow_folder, quick_folder) = (folder("slow"), folder("quick"));
    let slow = Slow::of(&slow_folder);
    let bench = Bench::with_policies(home, vec![], Registry::default(), Arc::new(slow.clone()));
    let session = |folder: &AbsPath| {
        let new = NewSession { roots: vec![folder.clone()], mode: Some(Mode::Default), model: None };
        bench.engine.new_session(new).unwrap()
    };
    let (held, quick) = (session(&slow_folder), session(&quick_folder));
    let mut events_of_held = held.events().subscribe(0, vec![]);
    let mut events = quick.events().subscribe(0, vec![]);

    slow.set(true);
    held.prompts().submit(prompt("held up")).unwrap();
    slow.waits.notified().await;
    // On this one thread everything else continues: another session's turn, and what the held one says of itself.
    quick.prompts().submit(prompt("not held up")).unwrap();
    until(&mut events, is_done).await;
    assert!(held.gate().rules_in_force().rules.is_empty() && held.hooks().declared().listed.is_empty());
    assert_eq!(held.snapshot(usize::MAX).mode, Mode::Default);
    assert!(held.is_busy());
    slow.set(false);
    until(&mut events_of_held, is_done).await;
}

#[tokio::test]
async fn whoever_asks_while_somebody_looks_shares_the_next_look_and_not_that_one() {
    let home = tempfile::tempdir().unwrap();
    let folder = AbsPath::new(home.path()).unwrap();
    let slow = Slow::of(&folder);
    let bench = Bench::with_policies(home, vec![], Registry::default(), Arc::new(slow.clone()));
    let new = NewSession { roots: vec![folder], mode: Some(Mode::Default), model: None };
    let session = bench.engine.new_session(new).unwrap();
    // Whatever the session checks when it begins.
    session.gate().refresh().await;
    let before = slow.looks.load(Ordering::SeqCst);
    slow.set(true);
    let look = || {
        let session = Arc::clone(&session);
        tokio::spawn(async move { session.gate().refreshed().await })
    };
    let first = look();
    slow.waits.notified().await;
    let others: Vec<_> = (0..10).map(|_| look()).collect();
    // All of them have asked by then.
    tokio::task::yield_now().await;
    slow.set(false);
    first.await.unwrap();
    for other in others {
        other.await.unwrap();
    }
    // The session's own tasks may have looked beside them.
    let looks = slow.looks.load(Ordering::SeqCst) - before;
    assert!((2..=5).contains(&looks), "{looks}");
}
