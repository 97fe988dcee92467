//! Loom models of the page: transports of several processes that take lines, leave them, and send
//! at the same time.
//!
//! ```sh
//! RUSTFLAGS="--cfg apus_hostgroup_loom" cargo test --release -p apus-hostgroup --lib model
//! ```

use super::line::{LINES, Line, OWNED_FOR, PAGE, add_to_queue, link_idle_at};
use crate::sync::{Ordering, Page};
use loom::sync::Arc;
use loom::thread;

/// The time of a model. The first line was last used long before.
const NOW: u64 = 2 * OWNED_FOR;

/// Claims a line, and returns its number.
fn take(page: &Page, owner: u64, now: u64) -> usize {
    Line::take(page, owner, now).expect("there are as many lines as transports")
}

#[test]
fn transports_that_begin_at_once_have_lines_of_their_own() {
    loom::model(|| {
        let page = Arc::new(Page::zeroed(PAGE));
        let others = page.clone();
        let other = thread::spawn(move || take(&others, 2, NOW + 1));
        let own = take(&page, 1, NOW);
        let other = other.join().unwrap();
        assert_ne!(own, other, "LINE-1");
        for (line, owner) in [(own, 1), (other, 2)] {
            let line = Line::of(&page, line);
            assert!(line.counts(NOW) && line.owner.load(Ordering::Relaxed) == owner, "LINE-1");
        }
        assert_eq!(Line::used(&page).count(), LINES);
    });
}

#[test]
fn a_former_owner_that_leaves_takes_nothing_from_the_owner() {
    loom::model(|| {
        let page = Arc::new(Page::zeroed(PAGE));
        // The owner was stopped for longer than a line is owned.
        let left = take(&page, 1, 1);
        let others = page.clone();
        let other = thread::spawn(move || {
            let own = take(&others, 2, NOW);
            Line::of(&others, own).publish(NOW + 1, 10, &[7]);
            own
        });
        Line::of(&page, left).give_back(1);
        let own = Line::of(&page, other.join().unwrap());
        assert!(own.counts(NOW + 1), "LINE-2");
        assert_eq!(own.incoming(), 10);
        assert_eq!(own.active().collect::<Vec<_>>(), [7]);
    });
}

#[test]
fn what_is_sent_at_once_is_in_the_queue() {
    loom::model(|| {
        let page = Arc::new(Page::zeroed(PAGE));
        let others = page.clone();
        let other = thread::spawn(move || add_to_queue(&others, NOW, 100));
        add_to_queue(&page, NOW, 20);
        add_to_queue(&page, NOW, 3);
        other.join().unwrap();
        assert_eq!(link_idle_at(&page, NOW).as_nanos(), NOW + 123, "LINE-3");
    });
}
