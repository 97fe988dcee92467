//! Which requests are under way?

/// A request that is under way, or waits to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Bytes of payload.
    pub size: u32,
    /// To which peer.
    pub peer: usize,
    /// When it was due, in nanoseconds since the load began.
    pub due: u64,
}

/// Requests under way, by the ids that the client knows them by.
pub(super) struct Flight {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl Flight {
    /// For at most `limit` requests at a time.
    pub(super) fn new(limit: u32) -> Self {
        Self { slots: vec![None; limit as usize], free: (0..limit).rev().collect() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Takes a request in and gives its id.
    ///
    /// # Panics
    ///
    /// If it is full.
    pub(super) fn begin(&mut self, request: Request) -> u32 {
        let id = self.free.pop().expect("the caller looks whether it is full");
        self.slots[id as usize] = Some(request);
        id
    }

    /// The request with this id is complete.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn end(&mut self, id: u32) -> Request {
        let request = self.slots[id as usize].take().expect("a client completes a request once");
        self.free.push(id);
        request
    }
}
