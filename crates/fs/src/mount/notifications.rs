//! Notifications of the kernel, from a thread that does nothing else.
//!
//! A notification waits until operations under way have let pages and directories go, and so for replies of the thread that
//! serves the kernel.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use apus_fs_core::client::{Invalidation, NotifyToken};
use apus_fuse::Notifier;
use apus_fuse::codec::Notification;

use crate::mailbox::Mailbox;

/// What is to be dropped, and its name.
type Order = (NotifyToken, Vec<Invalidation>);

/// The thread's orders. It ends when this is dropped, and when the notification that it sends has ended.
#[derive(Debug)]
pub(super) struct Notifications(Sender<Order>);

impl Notifications {
    /// Starts the thread. It puts a letter into `mailbox` for each order that is carried out.
    ///
    /// # Errors
    ///
    /// The system grants no thread.
    pub(super) fn start<T: From<NotifyToken> + Send + 'static>(
        notifier: Notifier,
        mailbox: Arc<Mailbox<T>>,
    ) -> io::Result<Self> {
        let (sender, orders) = channel();
        let thread = thread::Builder::new().name("apus-fs-notify".to_owned());
        thread.spawn(move || carry_out(&orders, &notifier, &mailbox))?;
        Ok(Self(sender))
    }

    /// Has the kernel drop what it has cached. Returns whether the thread is alive.
    pub(super) fn send(&self, token: NotifyToken, items: Vec<Invalidation>) -> bool {
        self.0.send((token, items)).is_ok()
    }
}

fn carry_out<T: From<NotifyToken>>(
    orders: &Receiver<Order>,
    notifier: &Notifier,
    mailbox: &Mailbox<T>,
) {
    while let Ok((token, items)) = orders.recv() {
        for item in items {
            // What the kernel does not know, it has not cached; and after the end of the connection it has nothing cached.
            let _ = notifier.send(&notification(&item));
        }
        mailbox.send(token.into());
    }
}

fn notification(item: &Invalidation) -> Notification<'static> {
    /// An offset that leaves the data alone.
    const NO_DATA: i64 = -1;
    match item {
        Invalidation::Node { node, data } => {
            let offset = if *data { 0 } else { NO_DATA };
            Notification::InvalInode { node: node.0, offset, length: 0 }
        }
        Invalidation::Names => Notification::IncEpoch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fs_wire::Ino;

    #[test]
    fn attributes_can_be_dropped_without_data() {
        let offset = |data| match notification(&Invalidation::Node { node: Ino(3), data }) {
            Notification::InvalInode { node: 3, offset, length: 0 } => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!((offset(true), offset(false)), (0, -1));
    }
}
