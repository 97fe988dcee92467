//! Corks, and the messages over the network that are held back.

/// Largest number of messages that are held back: half of what one send carries, so that the peer
/// starts to work earlier.
const MAX_HELD_BACK: u32 = 32;

/// The number of corks, and of messages over the network that were held back since the last
/// transmission: by a cork, or because the backlog is too long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CorkState {
    corks: u32,
    held_back: u32,
}

impl CorkState {
    /// Adds a cork.
    pub(crate) const fn insert(&mut self) {
        self.corks += 1;
    }

    /// Removes a cork.
    pub(crate) const fn remove(&mut self) {
        self.corks -= 1;
    }

    /// Returns whether there is a cork.
    pub(crate) const fn is_corked(&self) -> bool {
        self.corks > 0
    }

    /// Counts a message that is held back. Returns whether it is time to send.
    #[must_use]
    pub(crate) const fn hold_back(&mut self) -> bool {
        self.held_back += 1;
        self.held_back >= MAX_HELD_BACK
    }

    /// Returns whether messages are held back.
    pub(crate) const fn holds_messages(&self) -> bool {
        self.held_back > 0
    }

    /// Notes that everything is sent.
    pub(crate) const fn clear_held_back(&mut self) {
        self.held_back = 0;
    }
}
