//! Encoding of notifications, which the file system sends without a request.

use super::error::EncodeError;
use super::layout::output;
use super::message::Message;
use super::name::can_be_sent;

/// Unsolicited message of a file system about its nodes and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notification<'a> {
    /// Cached attributes of a node are out of date, and its cached data in a range.
    InvalInode {
        /// The node.
        node: u64,
        /// First byte; negative if no data is concerned.
        offset: i64,
        /// Number of bytes; 0 is up to the end.
        length: i64,
    },
    /// A cached name is out of date.
    InvalEntry {
        /// The directory.
        parent: u64,
        /// The name.
        name: &'a [u8],
        /// Look the name up again before its next use, instead of dropping the tree below it (since
        /// 7.38).
        expire_only: bool,
    },
    /// A name has been removed; watches of inotify(7) report that.
    Delete {
        /// The directory.
        parent: u64,
        /// The node that had the name.
        child: u64,
        /// The name.
        name: &'a [u8],
    },
    /// Data of a file, for the page cache.
    Store {
        /// The node.
        node: u64,
        /// First byte.
        offset: u64,
        /// The data.
        data: &'a [u8],
    },
    /// Every cached name is to be looked up again before its next use (since 7.44).
    IncEpoch,
    /// Makes the kernel resend unanswered requests (since 7.40).
    Resend,
    /// Nodes that the kernel should forget where it can (since 7.45).
    Prune {
        /// The nodes.
        nodes: &'a [u64],
    },
}

impl<'a> Notification<'a> {
    /// Encodes the notification.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Name`], [`EncodeError::Length`].
    pub fn encode(&self) -> Result<Message<'a>, EncodeError> {
        let mut message = Message::new(0, self.code());
        match *self {
            Self::InvalInode { node, offset, length } => {
                message.push(&output::InvalInode { ino: node, off: offset, len: length });
            }
            Self::InvalEntry { parent, name, expire_only } => {
                let namelen = name_length(name)?;
                message.push(&output::InvalEntry { parent, namelen, flags: expire_only.into() });
                borrow_name(&mut message, name);
            }
            Self::Delete { parent, child, name } => {
                let namelen = name_length(name)?;
                message.push(&output::Delete { parent, child, namelen, padding: 0 });
                borrow_name(&mut message, name);
            }
            Self::Store { node, offset, data } => {
                let size = u32::try_from(data.len()).map_err(|_| EncodeError::Length)?;
                message.push(&output::Store { nodeid: node, offset, size, padding: 0 });
                message.borrow(data);
            }
            Self::IncEpoch | Self::Resend => {}
            Self::Prune { nodes } => {
                let count = u32::try_from(nodes.len()).map_err(|_| EncodeError::Length)?;
                message.push(&output::Prune { count, padding: 0, spare: 0 });
                message.borrow(bytemuck::cast_slice(nodes));
            }
        }
        message.finish()
    }

    /// `enum fuse_notify_code`.
    fn code(&self) -> i32 {
        match self {
            Self::InvalInode { .. } => 2,
            Self::InvalEntry { .. } => 3,
            Self::Store { .. } => 4,
            Self::Delete { .. } => 6,
            Self::Resend => 7,
            Self::IncEpoch => 8,
            Self::Prune { .. } => 9,
        }
    }
}

/// Returns the length of a name, if the kernel accepts it.
fn name_length(name: &[u8]) -> Result<u32, EncodeError> {
    if can_be_sent(name) { Ok(name.len() as u32) } else { Err(EncodeError::Name) }
}

fn borrow_name<'a>(message: &mut Message<'a>, name: &'a [u8]) {
    message.borrow(name);
    message.borrow(&[0]);
}
