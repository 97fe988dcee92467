//! What does the engine count?

apus_proto::__counters! {
    /// Counters of the engine; they only grow.
    EngineMetrics {
        /// Messages that the application got: requests, responses and errors of calls.
        messages,
        /// Messages that were there already when they were asked for (the kernel's `wait_none`).
        wait_none,
        /// Messages that came while their receiver polled or spun (`wait_fast`).
        wait_polled,
        /// Messages that came while their receiver slept (`wait_block`).
        wait_slept,
        /// Messages that went from the thread which received them to another one. Exactly one per message
        /// with a dedicated engine, none when the receiver polls itself.
        handoffs,
        /// Sleeping threads and tasks that were roused, for a message or for the turn.
        wakeups,
        /// Times that a thread woke up and had been told nothing, or found nothing.
        spurious_wakeups,
        /// Times that the turn went directly from one thread to another.
        turn_passes,
        /// Times that the keeper took the turn.
        keeper_turns,
        /// Times that a sleeper had to be told to look up.
        kicks,
        /// Times that the thread with the turn slept in the kernel.
        sleeps,
        /// Passes of the loop that a quota ended before everything was done: there was more to receive, to send, to
        /// hand over, or more timers were due.
        quota_exhaustions,
        /// Times that receiving stopped because too many requests waited for the application.
        feedback_stops,
        /// Replies that waited for the next look at the network, to leave together with others, because too many
        /// requests waited.
        held_replies,
        /// Times that a dedicated engine had used up its share of its core and left it to others
        /// ([`EndpointBuilder::core_share`](crate::EndpointBuilder::core_share)).
        rests,
        /// Calls that went through memory to a server of this host.
        local_calls,
        /// Calls of those that went over the network in the end, since the server's process had ended.
        local_fallbacks,
        /// Requests that came through memory from clients of this host.
        local_requests,
        /// Requests that came that way and were refused: too many waited, or nothing is served.
        local_refusals,
        /// Peers of this host whose memory was let go: they ended, were killed, or broke the protocol.
        local_pairs_ended,
        /// Batches of packets received.
        receive_batches,
        /// Packets received.
        packets_arrived,
        /// Packets that a switch had marked: congestion experienced.
        congestion_marks,
        /// Reports of the network about packets sent earlier.
        reports,
        /// Times that the core lock was found taken (`socket_lock_misses`).
        lock_misses,
        /// Nanoseconds that was waited for it then (`socket_lock_miss_cycles`).
        lock_miss_nanos,
        /// Nanoseconds spent on taking what had arrived, from the driver and from memory (`recv_cycles`). Sampled, as all
        /// times here: one pass in 251 is timed and counts for all.
        receive_nanos,
        /// Nanoseconds spent on what the protocol makes of it, and on timers (`softirq_cycles`, `timer_cycles`).
        protocol_nanos,
        /// Nanoseconds spent on making packets and handing them to the driver (`send_cycles`, `pacer_xmit_cycles`).
        send_nanos,
        /// Nanoseconds spent on looking for something to do in vain, by who has the turn and by who waits beside it
        /// (`poll_cycles`).
        poll_nanos,
    }
}
