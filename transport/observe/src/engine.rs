//! Counters of the engine.

apus_proto::__counters! {
    /// Counters of the engine; they only grow.
    EngineMetrics {
        /// Messages that the application received: requests, responses and errors of calls.
        messages,
        /// Messages that were available when the application requested them (the kernel's
        /// `wait_none`).
        wait_none,
        /// Messages that arrived while the waiting thread polled or spun (`wait_fast`).
        wait_polled,
        /// Messages that arrived while the waiting thread slept (`wait_block`).
        wait_slept,
        /// Messages that were handed off by the thread that received them to another one: every
        /// message with a dedicated engine, none if the waiting thread polls itself.
        handoffs,
        /// Messages that a thread or task has received from another shard than its own. 0 with one
        /// shard.
        steals,
        /// Waiting threads and tasks of other shards that were asked to receive messages of this
        /// one, that none of its own threads was about to receive.
        steal_requests,
        /// Sleeping threads and tasks that were woken, for a message or for the poll role.
        wakeups,
        /// Wake-ups of a thread without a notification or a message.
        spurious_wakeups,
        /// Times that a thread passed the poll role to another one.
        turn_passes,
        /// Times that the background poller took the poll role.
        keeper_turns,
        /// Times that the leader was woken from its sleep by another thread, for an earlier timer
        /// or the poll role.
        kicks,
        /// Times that the leader slept in the kernel.
        sleeps,
        /// Passes of the loop that a quota ended early: there was more to receive, to send or to
        /// deliver, or more timers were due.
        quota_exhaustions,
        /// Times that receiving stopped because too many requests waited for the application.
        feedback_stops,
        /// Replies that were held back until the next poll of the network, to leave together with
        /// others, because too many requests waited.
        held_replies,
        /// Times that a dedicated engine had used its share of its core and left the core to other
        /// threads (`EndpointBuilder::core_share`).
        rests,
        /// Calls that went through shared memory to a server on this host.
        local_calls,
        /// Calls through shared memory that were repeated over the network because the server's
        /// process had ended.
        local_fallbacks,
        /// Requests received through shared memory from clients on this host.
        local_requests,
        /// Requests through shared memory that were refused because too many waited.
        local_refusals,
        /// Peers on this host whose shared memory was unmapped: they ended, were killed, or
        /// violated the protocol.
        local_pairs_ended,
        /// Endpoints whose name for peers of this host was held by another process when they
        /// started: their clients on this host call over the network.
        local_names_taken,
        /// Connections to peers on this host that were given up because the process under the
        /// peer's name does not own the peer's UDP socket.
        local_impostors,
        /// Batches of packets received.
        receive_batches,
        /// Packets received.
        packets_arrived,
        /// Packets that a switch had marked with congestion experienced (ECN).
        congestion_marks,
        /// Reports of the network about packets that were sent earlier, such as ICMP errors.
        reports,
        /// Times that a thread found the core lock taken (`socket_lock_misses`).
        lock_misses,
        /// Nanoseconds that threads waited for the core lock (`socket_lock_miss_cycles`).
        lock_miss_nanos,
        /// Nanoseconds spent on receiving from the driver and from shared memory (`recv_cycles`).
        /// Sampled, as are all times of the engine: one pass in 251 is timed and counts for all.
        receive_nanos,
        /// Nanoseconds spent on handling packets and timers in the protocol (`softirq_cycles`,
        /// `timer_cycles`).
        protocol_nanos,
        /// Nanoseconds spent on making packets and giving them to the driver (`send_cycles`,
        /// `pacer_xmit_cycles`).
        send_nanos,
        /// Nanoseconds spent on polling without success, by the leader and by threads that spin
        /// at the same time (`poll_cycles`).
        poll_nanos,
    }
}
