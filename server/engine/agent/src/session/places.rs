//! How many calls of a session run at once, a number that settings may change while some run.
//!
//! Rule: calls get their places in the order in which they ask; a number that has become smaller ends no call, and counts as
//! soon as enough of them have ended.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

/// The places.
#[derive(Debug)]
pub(crate) struct Places {
    free: Semaphore,
    size: Mutex<Size>,
}

#[derive(Debug)]
struct Size {
    /// So many there are to be.
    wanted: usize,
    /// So many of those that are taken go when they are given back.
    to_go: usize,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    permit: Option<SemaphorePermit<'a>>,
    places: &'a Places,
}

impl Places {
    /// So many, one at least.
    pub(crate) fn new(wanted: usize) -> Self {
        let wanted = wanted.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Semaphore::new(wanted), size: Mutex::new(Size { wanted, to_go: 0 }) }
    }

    /// Lets there be so many from now on, one at least.
    pub(crate) fn set(&self, wanted: usize) {
        let wanted = wanted.clamp(1, Semaphore::MAX_PERMITS);
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted > size.wanted {
            let more = wanted - size.wanted;
            let kept = more.min(size.to_go);
            size.to_go -= kept;
            self.free.add_permits(more - kept);
        } else {
            let fewer = size.wanted - wanted;
            size.to_go += fewer - self.free.forget_permits(fewer);
        }
        size.wanted = wanted;
    }

    /// Waits for a place.
    pub(crate) async fn take(&self) -> Place<'_> {
        // Nobody closes it.
        Place { permit: self.free.acquire().await.ok(), places: self }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut size = self.places.size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permit) = self.permit.take()
            && size.to_go > 0
        {
            size.to_go -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// How many places can be taken at once now, besides those that are taken.
    fn free(places: &Places) -> usize {
        let mut taken = Vec::new();
        while let Some(place) = places.take().now_or_never() {
            taken.push(place);
        }
        taken.len()
    }

    #[test]
    fn the_number_grows_and_shrinks_while_places_are_taken() {
        let places = Places::new(3);
        let (one, two) = (places.take().now_or_never().unwrap(), places.take().now_or_never().unwrap());
        places.set(1);
        assert_eq!(free(&places), 0);
        drop(one);
        assert_eq!(free(&places), 0, "one still runs");
        places.set(3);
        assert_eq!(free(&places), 2);
        drop(two);
        assert_eq!(free(&places), 3);
        places.set(0);
        assert_eq!(free(&places), 1, "there is always one");
    }

    #[test]
    fn whoever_waits_goes_on_when_there_are_more() {
        let places = Places::new(1);
        let _one = places.take().now_or_never().unwrap();
        let mut waiting = Box::pin(places.take());
        assert!(waiting.as_mut().now_or_never().is_none());
        places.set(2);
        assert!(waiting.now_or_never().is_some());
    }
}
