//! Notifications of the kernel, sent by two dedicated threads.
//!
//! A client returns a lease when the kernel no longer uses any state cached under it. Making the
//! kernel drop pages first would deadlock: it would wait for pages that are locked by reads and
//! writes in progress, these wait for a lease, and that lease is granted to this client only after
//! it has returned the first one. Two mounts that append to one file would wait for each other
//! until the server ends a session.
//!
//! So the kernel is made to forget the attributes, which never waits. It then requests them before
//! each use of its pages, and drops the pages if time of modification or size have changed
//! (`AUTO_INVAL_DATA`, fs/fuse/inode.c `fuse_change_attributes`). The pages are dropped in
//! addition, by a second thread, which may wait: programs that have mapped the file do not query
//! attributes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use apus_fs_core::client::{Invalidation, NotifyToken};
use apus_fuse::Notifier;
use apus_fuse::codec::Notification;

use crate::mailbox::Mailbox;

/// Items to forget, and the token of the notification.
type Order = (NotifyToken, Vec<Invalidation>);

/// Maximum number of nodes whose pages wait to be dropped. Beyond that, further nodes rely on the
/// attributes alone: a hundred thousand nodes are recalled at once when a session ends.
const MOST_NODES: usize = 1 << 16;

/// The threads' orders. They end when this is dropped, and when the notification that they send has
/// ended.
#[derive(Debug)]
pub(super) struct Notifications(Sender<Order>);

impl Notifications {
    /// Starts the threads. A letter is put into `mailbox` for each order that is carried out.
    ///
    /// # Errors
    ///
    /// The system grants no thread.
    pub(super) fn start<T: From<NotifyToken> + Send + 'static>(
        notifier: &Notifier,
        mailbox: Arc<Mailbox<T>>,
    ) -> io::Result<Self> {
        let (sender, orders) = channel();
        let (pages, nodes) = channel();
        let own = notifier.clone();
        thread("apus-fs-notify").spawn(move || carry_out(&orders, &own, &pages, &mailbox))?;
        let own = notifier.clone();
        thread("apus-fs-pages").spawn(move || drop_pages(&nodes, &own))?;
        Ok(Self(sender))
    }

    /// Has the kernel forget. Returns whether the thread is alive.
    pub(super) fn send(&self, token: NotifyToken, items: Vec<Invalidation>) -> bool {
        self.0.send((token, items)).is_ok()
    }
}

fn thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

fn carry_out<T: From<NotifyToken>>(
    orders: &Receiver<Order>,
    notifier: &Notifier,
    pages: &Sender<u64>,
    mailbox: &Mailbox<T>,
) {
    while let Ok((token, items)) = orders.recv() {
        for item in items {
            // An item unknown to the kernel is not cached, and after the end of the connection its
            // cache is empty.
            let _ = notifier.send(&forget(&item));
            if let Invalidation::Node { node, data: true } = item {
                let _ = pages.send(node.0);
            }
        }
        mailbox.send(token.into());
    }
}

/// Returns a notification that never waits.
fn forget(item: &Invalidation) -> Notification<'static> {
    /// An offset that leaves the pages alone.
    const NO_PAGES: i64 = -1;
    match item {
        Invalidation::Node { node, .. } => {
            Notification::InvalInode { node: node.0, offset: NO_PAGES, length: 0 }
        }
        Invalidation::Names => Notification::IncEpoch,
    }
}

fn drop_pages(nodes: &Receiver<u64>, notifier: &Notifier) {
    while let Ok(first) = nodes.recv() {
        // While this thread waited, many nodes may have been queued, some of them repeatedly.
        let mut all: Vec<u64> = std::iter::once(first).chain(nodes.try_iter()).collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(MOST_NODES);
        for node in all {
            let _ = notifier.send(&Notification::InvalInode { node, offset: 0, length: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fs_core::wire::Ino;

    #[test]
    fn no_notification_that_is_waited_for_drops_pages() {
        for data in [false, true] {
            let sent = forget(&Invalidation::Node { node: Ino(3), data });
            assert!(matches!(sent, Notification::InvalInode { node: 3, offset: -1, length: 0 }));
        }
    }
}
