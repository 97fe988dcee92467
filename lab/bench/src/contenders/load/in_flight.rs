//! Outstanding requests of a load generator.

/// A request, outstanding or waiting for a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Payload bytes.
    pub size: u32,
    /// Index of the peer.
    pub peer: usize,
    /// Due time in nanoseconds since the start of the load.
    pub due: u64,
}

/// Outstanding requests, by the ids that the client uses.
pub(super) struct InFlight {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl InFlight {
    /// Returns an empty table for at most `limit` requests.
    pub(super) fn new(limit: u32) -> Self {
        Self { slots: vec![None; limit as usize], free: (0..limit).rev().collect() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Adds a request and returns its id.
    ///
    /// # Panics
    ///
    /// The table is full.
    pub(super) fn begin(&mut self, request: Request) -> u32 {
        let id = self.free.pop().expect("the caller checks that there is room");
        self.slots[id as usize] = Some(request);
        id
    }

    /// Removes the completed request with this id.
    ///
    /// # Panics
    ///
    /// No request has this id.
    pub(super) fn end(&mut self, id: u32) -> Request {
        let request = self.slots[id as usize].take().expect("a client completes a request once");
        self.free.push(id);
        request
    }
}
