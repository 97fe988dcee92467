//! What keeps a receive path from spending all of its time on packets that are thrown away?
//!
//! Past the rate that a receiver can bear, a loop that receives whenever there is something to receive does
//! nothing else: packets are taken in with great effort, find a full queue behind, and are dropped. What comes
//! out falls towards zero, *receive livelock* (J. Mogul and K. Ramakrishnan, "Eliminating Receive Livelock in
//! an Interrupt-Driven Kernel", USENIX 1996 and ACM TOCS 15(3), 1997). Their cures, one file each:
//!
//! | file | what is bounded | then |
//! |---|---|---|
//! | [`quota`](Budget) | what one turn does of each kind of work | the next kind has its turn |
//! | [`feedback`](Feedback) | what waits for the application | receiving stops until it has caught up |
//! | [`share`](CoreShare) | how much of a core the loop takes from others | receiving stops until the period ends |
//!
//! Whatever is not received stays in the kernel's socket buffer, and what does not fit there is dropped at
//! once: the cheapest place, as nothing has been spent on it.
//!
//! ```
//! use apus::overload::{Budget, Feedback, Instant, Quotas, CoreShare, Work};
//!
//! let mut budget = Budget::new(Quotas::default());
//! let mut feedback = Feedback::new(32);
//! let mut share = CoreShare::of_percent(50);
//! # let (mut now, mut queue, mut socket) = (0, 0, 100);
//! # for _ in 0..10 {
//! // One turn of a loop, at `now`:
//! let begins = Instant::from_nanos(now);
//! budget.begin();
//! if share.until(begins).is_none() && feedback.check(queue, begins) {
//!     let received = budget.left(Work::Receive).min(socket);
//!     budget.spend(Work::Receive, received);
//!     socket -= received;
//!     queue += received;
//! }
//! now += 10_000;
//! share.charge(10_000, Instant::from_nanos(now));
//! # }
//! # assert_eq!((queue, socket, feedback.stops()), (32, 68, 1));
//! ```
//!
//! # Invariants
//!
//! - **O1** Nothing here reads a clock, calls the system, or decides by chance: time is handed in, and the
//!   same calls have the same results.
//! - **O2** Nothing stops receiving for ever: each stop ends at an instant that is known when it begins
//!   ([`Feedback::until`], [`CoreShare::until`]). Whoever sleeps meanwhile, sleeps until then at most.

mod feedback;
mod quota;
mod share;

pub use apus_proto::Instant;
pub use feedback::Feedback;
pub use quota::{Budget, Quotas, RoundRobin, Work};
pub use share::CoreShare;
