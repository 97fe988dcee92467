//! What does the engine count?

/// Counters of the engine; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineMetrics {
    /// Messages that the application got: requests, responses and errors of calls.
    pub messages: u64,
    /// Messages that were there already when they were asked for (the kernel's `wait_none`).
    pub wait_none: u64,
    /// Messages that came while their receiver polled or spun (`wait_fast`).
    pub wait_polled: u64,
    /// Messages that came while their receiver slept (`wait_block`).
    pub wait_slept: u64,
    /// Messages that went from the thread which received them to another one. Exactly one per message
    /// with a dedicated engine, none when the receiver polls itself.
    pub handoffs: u64,
    /// Sleeping threads and tasks that were roused, for a message or for the turn.
    pub wakeups: u64,
    /// Times that a thread woke up and had been told nothing, or found nothing.
    pub spurious_wakeups: u64,
    /// Times that the turn went directly from one thread to another.
    pub turn_passes: u64,
    /// Times that the keeper took the turn.
    pub keeper_turns: u64,
    /// Times that a sleeper had to be told to look up.
    pub kicks: u64,
    /// Times that the thread with the turn slept in the kernel.
    pub sleeps: u64,
    /// Passes of the loop that a quota ended before everything was done: there was more to receive, to send, to
    /// hand over, or more timers were due.
    pub quota_exhaustions: u64,
    /// Times that receiving stopped because too many requests waited for the application.
    pub feedback_stops: u64,
    /// Replies that waited for the next look at the network, to leave together with others, because too many
    /// requests waited.
    pub held_replies: u64,
    /// Times that a dedicated engine had used up its share of its core and left it to others
    /// ([`Builder::share`](crate::Builder::share)).
    pub rests: u64,
    /// Calls that went through memory to a server of this host.
    pub local_calls: u64,
    /// Calls of those that went over the network in the end, since the server's process had ended.
    pub local_fallbacks: u64,
    /// Requests that came through memory from clients of this host.
    pub local_requests: u64,
    /// Requests that came that way and were refused: too many waited, or nothing is served.
    pub local_refusals: u64,
    /// Peers of this host whose memory was let go: they ended, were killed, or broke the protocol.
    pub local_pairs_ended: u64,
    /// Batches of packets received.
    pub receive_batches: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Packets that a switch had marked: congestion experienced.
    pub congestion_marks: u64,
    /// Reports of the network about packets sent earlier.
    pub reports: u64,
}
