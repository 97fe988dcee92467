//! An independent model of names and contents in POSIX: a set of names and a list of bytes.

use std::collections::{BTreeMap, BTreeSet};

use apus_fs_core::wire::{Errno, Ino, Name, NewNode, Record};

/// Names and contents of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    /// Directory and name, and the node that has it.
    pub(crate) names: BTreeMap<(Ino, Name), Ino>,
    /// Directories but the root.
    pub(crate) directories: BTreeSet<Ino>,
    /// Files, also those without a name.
    pub(crate) files: BTreeMap<Ino, Vec<u8>>,
}

impl Model {
    fn is_directory(&self, node: Ino) -> bool {
        node == Ino::ROOT || self.directories.contains(&node)
    }

    fn name(&self, directory: Ino, name: &Name) -> Result<Option<Ino>, Errno> {
        if self.is_directory(directory) {
            Ok(self.names.get(&(directory, name.clone())).copied())
        } else if self.files.contains_key(&directory) {
            Err(Errno::NOTDIR)
        } else {
            Err(Errno::STALE)
        }
    }

    pub(crate) fn names_of(&self, node: Ino) -> usize {
        self.names.values().filter(|found| **found == node).count()
    }

    fn is_empty(&self, directory: Ino) -> bool {
        self.names.keys().all(|(parent, _)| *parent != directory)
    }

    /// Returns a directory and all above it.
    fn above(&self, directory: Ino) -> BTreeSet<Ino> {
        let mut all = BTreeSet::from([directory]);
        let mut below = directory;
        while let Some(((parent, _), _)) = self.names.iter().find(|(_, node)| **node == below) {
            below = *parent;
            all.insert(below);
        }
        all
    }

    /// Applies a record to names and contents. Records of other kinds are ignored.
    pub(crate) fn apply(&mut self, record: &Record, payload: &[u8]) -> Result<(), Errno> {
        match record {
            Record::Create { parent: Some((parent, name)), ino, node, .. } => {
                if self.name(parent.ino, name)?.is_some() {
                    return Err(Errno::EXIST);
                }
                match node {
                    NewNode::Directory => drop(self.directories.insert(*ino)),
                    NewNode::File | NewNode::Symlink { .. } | NewNode::Special { .. } => {
                        self.files.insert(*ino, Vec::new());
                    }
                }
                self.names.insert((parent.ino, name.clone()), *ino);
                Ok(())
            }
            Record::Link { node, parent, name } => {
                if self.name(parent.ino, name)?.is_some() {
                    return Err(Errno::EXIST);
                }
                self.names.insert((parent.ino, name.clone()), node.ino);
                Ok(())
            }
            Record::Unlink { parent, name, node } => {
                let found = self.name(parent.ino, name)?.ok_or(Errno::NOENT)?;
                if found != node.ino {
                    return Err(Errno::STALE);
                }
                if self.is_directory(found) {
                    return Err(Errno::ISDIR);
                }
                self.names.remove(&(parent.ino, name.clone()));
                Ok(())
            }
            Record::RemoveDirectory { parent, name, node } => {
                let found = self.name(parent.ino, name)?.ok_or(Errno::NOENT)?;
                if found != node.ino {
                    return Err(Errno::STALE);
                }
                if !self.is_directory(found) {
                    return Err(Errno::NOTDIR);
                }
                if !self.is_empty(found) {
                    return Err(Errno::NOTEMPTY);
                }
                self.names.remove(&(parent.ino, name.clone()));
                self.directories.remove(&found);
                Ok(())
            }
            Record::Rename { from, to, exchange, .. } => {
                self.rename((from.0.ino, from.1.clone()), (to.0.ino, to.1.clone()), *exchange)
            }
            Record::Write { file, offset, data, .. } => {
                if self.is_directory(file.ino) {
                    return Err(Errno::ISDIR);
                }
                let contents = self.files.get_mut(&file.ino).ok_or(Errno::STALE)?;
                let end = *offset as usize + data.length as usize;
                if data.length > 0 {
                    contents.resize(contents.len().max(end), 0);
                    let bytes = &payload[data.start as usize..][..data.length as usize];
                    contents[*offset as usize..end].copy_from_slice(bytes);
                }
                Ok(())
            }
            Record::SetAttributes { node, set } => {
                if let Some(size) = set.size {
                    if self.is_directory(node.ino) {
                        return Err(Errno::ISDIR);
                    }
                    self.files.get_mut(&node.ino).ok_or(Errno::STALE)?.resize(size as usize, 0);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Renames. The caller has checked that the record names the nodes behind the names.
    fn rename(&mut self, from: (Ino, Name), to: (Ino, Name), exchange: bool) -> Result<(), Errno> {
        let source = self.name(from.0, &from.1)?.ok_or(Errno::NOENT)?;
        let target = self.name(to.0, &to.1)?;
        if exchange && target.is_none() {
            return Err(Errno::NOENT);
        }
        if target == Some(source) {
            return Ok(());
        }
        if self.above(to.0).contains(&source) {
            return Err(Errno::INVAL);
        }
        if let Some(target) = target {
            if self.above(from.0).contains(&target) {
                return Err(if exchange { Errno::INVAL } else { Errno::NOTEMPTY });
            }
            match (self.is_directory(source), self.is_directory(target)) {
                _ if exchange => {}
                (true, false) => return Err(Errno::NOTDIR),
                (false, true) => return Err(Errno::ISDIR),
                (true, true) if !self.is_empty(target) => return Err(Errno::NOTEMPTY),
                _ => {}
            }
        }
        self.names.remove(&from);
        self.names.remove(&to);
        match target {
            Some(target) if exchange => drop(self.names.insert(from, target)),
            Some(target) => drop(self.directories.remove(&target)),
            None => {}
        }
        self.names.insert(to, source);
        Ok(())
    }
}
