//! Listing of a directory, or of the tree below it.
//!
//! The requested directory and its entries are current: conflicting leases of other sessions are
//! recalled. Deeper levels are a prefetch that interrupts no other client: an entry under another
//! session's exclusive lease is returned without a lease, and such a directory is not listed.

use std::collections::VecDeque;

use crate::wire::{Attributes, Errno, Ino, LeaseKind, ListTree, Listing, Name, NodeKind, Response};

use crate::rights::access::{EXECUTE, READ};

use super::access::Access;
use super::attempt::Attempt;
use super::grants::{is_readable, offer};
use super::queue::Needs;
use super::reads::{contents, entry, entry_with};
use super::settings::{ENTRY_BYTES, MAX_INLINE, MAX_LISTED, MAX_LISTING_BYTES};
use crate::store::{DirectoryPart, Store};

/// Remaining room of a response.
struct Budget {
    entries: usize,
    bytes: usize,
    contents: usize,
}

impl Budget {
    /// Reserves room for an entry or a listing; false if there is none.
    fn take(&mut self, bytes: usize) -> bool {
        if self.entries == 0 || self.bytes < bytes {
            return false;
        }
        self.entries -= 1;
        self.bytes -= bytes;
        true
    }
}

/// A directory that is to be listed.
struct Directory {
    ino: Ino,
    attributes: Attributes,
    /// Levels that are listed, this one included.
    depth: u16,
}

/// Lists a directory and the tree below it.
pub(super) fn list_tree<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    list: &ListTree,
) -> Attempt {
    if !access.is_valid(session, list.directory) {
        return Attempt::failed(Errno::STALE);
    }
    let ino = list.directory.ino;
    if !is_readable(access, ticket, session, ino) {
        return Attempt::Blocked(Needs::from([(ino, LeaseKind::Shared)]));
    }
    let attributes = match access.store.attributes(ino) {
        Ok(attributes) if attributes.kind == NodeKind::Directory => attributes,
        Ok(_) => return Attempt::failed(Errno::NOTDIR),
        Err(errno) => return Attempt::failed(errno),
    };
    if let Err(errno) = access.may(session, ino, READ | EXECUTE) {
        return Attempt::failed(errno);
    }
    let mut budget = Budget {
        // One for the listing itself.
        entries: (list.entries.max(1) as usize).min(MAX_LISTED) + 1,
        bytes: MAX_LISTING_BYTES,
        contents: list.inline_total as usize,
    };
    let part = match access.store.list(ino, list.after.as_ref(), budget.entries - 1) {
        Ok(part) => part,
        Err(errno) => return Attempt::failed(errno),
    };
    let mut nodes = part.entries.iter().map(|(_, child, _)| *child);
    if !nodes.all(|child| is_readable(access, ticket, session, child)) {
        let nodes = part.entries.iter().map(|(_, child, _)| *child).chain([ino]);
        return Attempt::Blocked(nodes.map(|node| (node, LeaseKind::Shared)).collect());
    }
    let mut first = Some(part);
    let mut directories = VecDeque::from([Directory { ino, attributes, depth: list.depth.max(1) }]);
    let mut listings = Vec::new();
    while let Some(directory) = directories.pop_front() {
        if !budget.take(ENTRY_BYTES) || (first.is_none() && budget.entries == 0) {
            break;
        }
        let part = match first.take() {
            Some(part) => Ok(part),
            None => access.store.list(directory.ino, None, budget.entries),
        };
        // A deeper directory that cannot be listed is left out: the client requests it separately,
        // and receives the error.
        let Ok(part) = part else { continue };
        let listing =
            listing(access, ticket, session, list, &directory, part, &mut budget, &mut directories);
        listings.push(listing);
    }
    Response::Listed(listings).into()
}

#[allow(clippy::too_many_arguments, reason = "one step of list_tree")]
fn listing<S: Store>(
    access: &mut Access<S>,
    ticket: u64,
    session: u64,
    list: &ListTree,
    directory: &Directory,
    part: DirectoryPart,
    budget: &mut Budget,
    below: &mut VecDeque<Directory>,
) -> Listing {
    let wanted = access.permitted(session, &directory.attributes, list.lease);
    let lease = offer(access, ticket, session, directory.ino, wanted);
    let mut entries: Vec<(Name, _)> = Vec::with_capacity(part.entries.len());
    let mut is_complete = part.is_complete;
    for (name, ino, attributes) in part.entries {
        if !budget.take(ENTRY_BYTES + name.as_bytes().len()) {
            is_complete = false;
            break;
        }
        if !is_readable(access, ticket, session, ino) {
            let entry = entry_with(access, session, ino, attributes, LeaseKind::None, None);
            entries.push((name, entry));
            continue;
        }
        let most = list.inline.min(MAX_INLINE).min(budget.contents.min(budget.bytes) as u32);
        let contents = contents(access, session, ino, &attributes, most);
        let length = contents.as_ref().map_or(0, bytes::Bytes::len);
        budget.contents = budget.contents.saturating_sub(length);
        budget.bytes = budget.bytes.saturating_sub(length);
        if attributes.kind == NodeKind::Directory
            && directory.depth > 1
            && access.may(session, ino, READ | EXECUTE).is_ok()
        {
            below.push_back(Directory { ino, attributes, depth: directory.depth - 1 });
        }
        let entry = entry(access, ticket, session, ino, attributes, list.lease, contents);
        entries.push((name, entry));
    }
    Listing {
        directory: access.proofs.handle(directory.ino),
        attributes: directory.attributes,
        lease,
        entries,
        is_complete,
    }
}
