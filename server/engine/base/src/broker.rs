//! Open prompts for the user, and the one answer of each: permission prompts and questions alike.
//!
//! Rule: the first answer wins and the others learn who gave it; cancelling answers too; an unanswered prompt
//! blocks nothing but its own call.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Number of closed ones that are remembered, to tell late answers who was first.
const CLOSED_REMEMBERED: usize = 256;

/// Something the user is asked.
pub trait UserRequest: Clone + fmt::Debug {
    /// Names it in the answer.
    type Id: Clone + Ord + fmt::Debug + fmt::Display;
    /// The user's answer.
    type Answer: fmt::Debug;
    /// Why an answer does not fit it.
    type Unfit: fmt::Debug + fmt::Display;

    /// Its id.
    fn id(&self) -> &Self::Id;

    /// Checks an answer before it is taken.
    ///
    /// # Errors
    /// Why the answer does not fit; the prompt stays open then.
    fn check(&self, answer: &Self::Answer) -> Result<(), Self::Unfit>;

    /// The party that closed it; without an answer it was cancelled.
    fn closed_by(&self, answer: Option<&Self::Answer>) -> String;
}

/// Publishes that something is asked, and that it is closed.
pub trait BrokerListener<A: UserRequest>: Send + Sync {
    /// It is asked.
    fn asked(&self, asked: &A);

    /// More is known about it now than when it was asked.
    fn updated(&self, _asked: &A) {}

    /// It is closed; without an answer it was cancelled.
    fn closed(&self, asked: &A, answer: Option<&A::Answer>);
}

/// The open prompts of one session, of one kind.
pub struct Broker<A: UserRequest> {
    announcer: Arc<dyn BrokerListener<A>>,
    state: Mutex<BrokerState<A>>,
}

#[derive(Debug)]
struct BrokerState<A: UserRequest> {
    pending: BTreeMap<A::Id, OpenRequest<A>>,
    closed: VecDeque<(A::Id, String)>,
}

#[derive(Debug)]
struct OpenRequest<A: UserRequest> {
    asked: A,
    answer: oneshot::Sender<A::Answer>,
}

/// How asking ended.
#[derive(Clone, Debug, PartialEq)]
pub enum BrokerOutcome<T> {
    /// The user answered.
    By(T),
    /// The call was cancelled first.
    Cancelled,
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RespondError<I: fmt::Debug + fmt::Display, U: fmt::Debug + fmt::Display> {
    /// Nothing of that id was ever asked here, or it is long closed.
    #[error("nothing waits for an answer under the id `{0}`")]
    Unknown(I),
    /// Another answer came first.
    #[error("`{id}` was already answered by {by}")]
    AlreadyResolved {
        /// The answer.
        id: I,
        /// The first one to answer.
        by: String,
    },
    /// The answer does not fit the prompt.
    #[error("{0}")]
    Unfit(U),
}

impl<A: UserRequest> fmt::Debug for Broker<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Broker").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<A: UserRequest> Broker<A> {
    /// A broker that publishes what it asks through `announcer`.
    #[must_use]
    pub fn new(announcer: Arc<dyn BrokerListener<A>>) -> Self {
        Self {
            announcer,
            state: Mutex::new(BrokerState { pending: BTreeMap::new(), closed: VecDeque::new() }),
        }
    }

    /// The open prompts, oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<A> {
        self.state.lock().pending.values().map(|pending| pending.asked.clone()).collect()
    }

    /// Asks, and waits for the first answer or for `cancel`.
    pub async fn ask(&self, asked: A, cancel: &CancellationToken) -> BrokerOutcome<A::Answer> {
        let id = asked.id().clone();
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            // Published under the lock, so that no reader sees an answer before its question.
            self.announcer.asked(&asked);
            state.pending.insert(id.clone(), OpenRequest { asked, answer: sender });
        }
        tokio::select! {
            biased;
            answer = receiver => answer.map_or(BrokerOutcome::Cancelled, BrokerOutcome::By),
            () = cancel.cancelled() => {
                let mut state = self.state.lock();
                if let Some(pending) = state.pending.remove(&id) {
                    self.close(&mut state, &pending.asked, None);
                }
                BrokerOutcome::Cancelled
            }
        }
    }

    /// Adds to a request that waits, and publishes that. One that is closed stays as it is.
    pub fn update(&self, id: &A::Id, change: impl FnOnce(&mut A)) {
        let mut state = self.state.lock();
        if let Some(pending) = state.pending.get_mut(id) {
            change(&mut pending.asked);
            self.announcer.updated(&pending.asked);
        }
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// [`RespondError`]; the prompt is unchanged then.
    pub fn respond(&self, id: &A::Id, answer: A::Answer) -> Result<(), RespondError<A::Id, A::Unfit>> {
        let mut state = self.state.lock();
        let Some(pending) = state.pending.remove(id) else {
            let by = state.closed.iter().find(|(closed, _)| closed == id).map(|(_, by)| by.clone());
            return Err(match by {
                Some(by) => RespondError::AlreadyResolved { id: id.clone(), by },
                None => RespondError::Unknown(id.clone()),
            });
        };
        if let Err(unfit) = pending.asked.check(&answer) {
            state.pending.insert(id.clone(), pending);
            return Err(RespondError::Unfit(unfit));
        }
        self.close(&mut state, &pending.asked, Some(&answer));
        // The asker is gone only when its call was cancelled at this very moment; the cancel then wins.
        drop(pending.answer.send(answer));
        Ok(())
    }

    fn close(&self, state: &mut BrokerState<A>, asked: &A, answer: Option<&A::Answer>) {
        state.closed.push_back((asked.id().clone(), asked.closed_by(answer)));
        if state.closed.len() > CLOSED_REMEMBERED {
            state.closed.pop_front();
        }
        self.announcer.closed(asked, answer);
    }
}
