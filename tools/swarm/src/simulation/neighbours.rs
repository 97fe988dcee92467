//! What an end knows of the others on its host: shards of an endpoint, or processes, that publish what they do (GRANT-17).

use std::cell::RefCell;
use std::rc::Rc;

use apus_proto::{Instant, Transport};
use apus_sim::host::Page;
use apus_workload::time::Nanos;

/// An end's place among its neighbours.
#[derive(Clone, Debug)]
pub(super) struct Place {
    page: Rc<RefCell<Page>>,
    number: usize,
}

impl Place {
    /// Returns the places of `count` ends.
    pub(super) fn among(count: usize) -> Vec<Self> {
        let page = Rc::new(RefCell::new(Page::new(count)));
        (0..count).map(|number| Self { page: Rc::clone(&page), number }).collect()
    }

    /// Has the end's transport learn what the others have published.
    pub(super) fn read(&self, transport: &mut Transport) {
        self.page.borrow().read(transport, self.number);
    }

    /// Has the end's transport publish what it does.
    pub(super) fn write(&self, now: Nanos, transport: &mut Transport) {
        self.page.borrow_mut().write(Instant::from_nanos(now), transport, self.number);
    }
}
