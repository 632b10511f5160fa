//! The slots of running calls: how many calls of a session run at once, a number that settings may change while some run.
//!
//! Rule: calls get slots in the order in which they ask. A smaller number ends no call: it applies as calls end.

use std::sync::Mutex;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::core::lock;

/// The slots of running calls.
#[derive(Debug)]
pub(crate) struct CallSlots {
    free: Semaphore,
    size: Mutex<SlotCounts>,
}

#[derive(Debug)]
struct SlotCounts {
    /// The number of slots there should be.
    wanted: usize,
    /// The number of taken slots that disappear when they are given back.
    surplus: usize,
}

/// A slot that is taken until it is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot<'a> {
    permit: Option<SemaphorePermit<'a>>,
    slots: &'a CallSlots,
}

impl CallSlots {
    /// `wanted` slots, at least one.
    pub(crate) fn new(wanted: usize) -> Self {
        let wanted = wanted.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Semaphore::new(wanted), size: Mutex::new(SlotCounts { wanted, surplus: 0 }) }
    }

    /// Sets the number of slots, at least one.
    pub(crate) fn set(&self, wanted: usize) {
        let wanted = wanted.clamp(1, Semaphore::MAX_PERMITS);
        let mut size = lock(&self.size);
        if wanted > size.wanted {
            let more = wanted - size.wanted;
            let kept = more.min(size.surplus);
            size.surplus -= kept;
            self.free.add_permits(more - kept);
        } else {
            let fewer = size.wanted - wanted;
            size.surplus += fewer - self.free.forget_permits(fewer);
        }
        size.wanted = wanted;
    }

    /// Waits for a slot.
    pub(crate) async fn take(&self) -> CallSlot<'_> {
        // The semaphore is never closed.
        CallSlot { permit: self.free.acquire().await.ok(), slots: self }
    }
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        let mut size = lock(&self.slots.size);
        if let Some(permit) = self.permit.take()
            && size.surplus > 0
        {
            size.surplus -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// The number of slots that can be taken now.
    fn free(slots: &CallSlots) -> usize {
        let mut taken = Vec::new();
        while let Some(slot) = slots.take().now_or_never() {
            taken.push(slot);
        }
        taken.len()
    }

    #[test]
    fn the_number_grows_and_shrinks_while_slots_are_taken() {
        let slots = CallSlots::new(3);
        let (one, two) = (slots.take().now_or_never().unwrap(), slots.take().now_or_never().unwrap());
        slots.set(1);
        assert_eq!(free(&slots), 0);
        drop(one);
        assert_eq!(free(&slots), 0, "one still runs");
        slots.set(3);
        assert_eq!(free(&slots), 2);
        drop(two);
        assert_eq!(free(&slots), 3);
        slots.set(0);
        assert_eq!(free(&slots), 1, "there is always one");
    }

    #[test]
    fn a_waiting_call_gets_a_slot_when_there_are_more() {
        let slots = CallSlots::new(1);
        let _one = slots.take().now_or_never().unwrap();
        let mut waiting = Box::pin(slots.take());
        assert!(waiting.as_mut().now_or_never().is_none());
        slots.set(2);
        assert!(waiting.now_or_never().is_some());
    }
}
