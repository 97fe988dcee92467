//! Moves the nodes of a log to where they belong.
//!
//! The third pass of a replay. A node that is not where it belongs is first moved to a directory of
//! the store's own, so that no name is in another one's way and no directory would become its own
//! ancestor.

use apus_fs_core::wire::{Errno, Ino, NodeKind};
use bytes::Bytes;
use rustix::fs::RenameFlags;

use super::discovery::Discovery;
use super::files::Files;
use super::frame::{Frame, FrameEntry, Observation};
use super::identity::Identity;
use super::journeys::{Journeys, RecordIndex};
use super::log::{Log, WriteError};
use super::table::{LOST, ORPHANS, Place, REPLAY, Table, number_name};

/// Why a log could not be replayed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The file system refused this record.
    Record(RecordIndex, Errno),
    /// Something else.
    Other(&'static str, Errno),
}

/// Returns a function that adds the failed step to an error.
pub(crate) fn during(what: &'static str) -> impl FnOnce(Errno) -> Failure {
    move |errno| Failure::Other(what, errno)
}

/// State of the pass that moves files to their places.
pub(crate) struct Arrangement<'a> {
    pub(crate) files: &'a mut Files,
    pub(crate) table: &'a mut Table,
    pub(crate) log: &'a mut Log,
    pub(crate) journeys: &'a Journeys,
    pub(crate) frames: &'a [Frame],
}

impl Arrangement<'_> {
    /// Brings all nodes of the log to where they belong.
    pub(crate) fn run(&mut self, discovery: &Discovery) -> Result<(), Failure> {
        let unsettled = self.evacuate(discovery)?;
        for ino in discovery.garbage.iter().rev() {
            self.discard(*ino)?;
        }
        for (ino, node) in &self.journeys.nodes {
            if node.is_deleted {
                self.discard(*ino)?;
            }
        }
        self.move_foreign(discovery, &unsettled)?;
        let mut created = Vec::new();
        for ino in &unsettled {
            created.extend(self.create_or_forget(*ino)?);
        }
        if !created.is_empty() {
            // If this replay is interrupted, the next one finds its files in the log. Without
            // space, it creates them again.
            let entries = [(FrameEntry::Observed(created), Bytes::new())];
            if let Err(WriteError::Broken(_)) = self.log.write(&entries, false) {
                return Err(Failure::Other("write the log", Errno::IO));
            }
        }
        for ino in &unsettled {
            let wanted = discovery.goal.get(ino).map_or(&[][..], Vec::as_slice);
            self.put(*ino, wanted)?;
        }
        Ok(())
    }

    fn places(&self, ino: Ino) -> Vec<Place> {
        self.table.node(ino).map_or(Vec::new(), |node| node.places.clone())
    }

    /// Takes nodes away from where they do not belong. Returns those which are to be put somewhere.
    fn evacuate(&mut self, discovery: &Discovery) -> Result<Vec<Ino>, Failure> {
        let mut unsettled = Vec::new();
        for (ino, node) in &self.journeys.nodes {
            let mut current = self.places(*ino);
            let mut wanted = discovery.goal.get(ino).cloned().unwrap_or_default();
            if wanted.is_empty() && !node.is_deleted {
                // Other processes have moved it: it stays where it is.
                continue;
            }
            current.sort_unstable();
            wanted.sort_unstable();
            if current == wanted {
                continue;
            }
            if !node.is_deleted {
                unsettled.push(*ino);
            }
            let refuge = (REPLAY, number_name(*ino));
            for place in current {
                if place == refuge {
                    continue;
                }
                if self.table.at(REPLAY, &refuge.1).is_none() {
                    self.rename(*ino, &place, &refuge).map_err(during("move a node away"))?;
                } else {
                    self.files
                        .unlink(self.table, &place, false)
                        .map_err(during("remove a name"))?;
                    self.table.remove_place(&place);
                }
            }
        }
        Ok(unsettled)
    }

    fn rename(&mut self, ino: Ino, from: &Place, to: &Place) -> Result<(), Errno> {
        self.files.rename(self.table, from, to, RenameFlags::NOREPLACE)?;
        self.table.remove_place(from);
        self.table.add_place(ino, to);
        Ok(())
    }

    /// Removes a node that the log deletes.
    fn discard(&mut self, ino: Ino) -> Result<(), Failure> {
        let Some(node) = self.table.node(ino) else { return Ok(()) };
        let is_directory = node.kind == NodeKind::Directory;
        for place in node.places.clone() {
            match self.files.unlink(self.table, &place, is_directory) {
                Ok(()) => {}
                // Another process has put something into it.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    self.lose(&place, number_name(ino)).map_err(during("keep a directory"))?;
                }
                Err(errno) => return Err(Failure::Other("remove a node", errno)),
            }
        }
        self.files.forget(ino);
        self.table.remove(ino);
        Ok(())
    }

    /// Moves a file that is not this store's out of the way.
    fn lose(&mut self, place: &Place, name: apus_fs_core::wire::Name) -> Result<(), Errno> {
        self.files.rename(self.table, place, &(LOST, name), RenameFlags::NOREPLACE)
    }

    fn move_foreign(&mut self, discovery: &Discovery, unsettled: &[Ino]) -> Result<(), Failure> {
        let is_wanted = |place: &Place| {
            let wants = |ino: &Ino| discovery.goal.get(ino).is_some_and(|all| all.contains(place));
            place.0 == REPLAY || place.0 == ORPHANS || unsettled.iter().any(wants)
        };
        let move_all = |(place, identity): (&Place, &Identity)| {
            if !is_wanted(place) {
                return Ok(());
            }
            self.table.forget_place(place);
            match self.lose(place, number_name(self.table.number(*identity))) {
                // It has several names.
                Err(Errno::EXIST) => self.files.unlink(self.table, place, false),
                done => done,
            }
        };
        discovery.foreign.iter().try_for_each(move_all).map_err(during("keep a file"))
    }

    /// Creates a node that was not found; forgets it if the log does not describe its creation:
    /// another process must have removed it.
    fn create_or_forget(&mut self, ino: Ino) -> Result<Option<Observation>, Failure> {
        if !self.places(ino).is_empty() {
            return Ok(None);
        }
        let Some((frame, index)) = self.journeys.nodes[&ino].created else {
            self.files.forget(ino);
            self.table.remove(ino);
            return Ok(None);
        };
        let FrameEntry::Part(part) = &self.frames[frame].entry else { return Ok(None) };
        let place = (REPLAY, number_name(ino));
        let identity = self
            .files
            .create(self.table, ino, &place, &part.records[index])
            .map_err(|errno| Failure::Record((frame, index), errno))?;
        self.table.identify(ino, identity);
        self.table.add_place(ino, &place);
        Ok(Some(Observation::Created { ino, identity }))
    }

    /// Moves a node to where it belongs.
    fn put(&mut self, ino: Ino, wanted: &[Place]) -> Result<(), Failure> {
        let refuge = (REPLAY, number_name(ino));
        if self.table.at(REPLAY, &refuge.1) != Some(ino) {
            return Ok(());
        }
        let mut first: Option<&Place> = None;
        for place in wanted {
            let done = match first {
                None => self.rename(ino, &refuge, place),
                Some(first) => self.files.link(self.table, first, place),
            };
            match done {
                Ok(()) => {
                    self.table.add_place(ino, place);
                    first = first.or(Some(place));
                }
                // Another process has removed the directory.
                Err(Errno::STALE) => {}
                Err(errno) => return Err(Failure::Other("move a node", errno)),
            }
        }
        if first.is_none() {
            self.lose(&refuge, refuge.1.clone()).map_err(during("keep a node"))?;
            self.files.forget(ino);
            self.table.remove(ino);
        }
        Ok(())
    }
}
