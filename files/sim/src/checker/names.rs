//! Names of all directories, as one object, so that renames between directories are covered.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use apus_fs_core::wire::{Errno, Ino, Name};

use super::linearise::{Model, Verdict, explain, search};
use crate::Violation;
use crate::history::{Happening, NameAction, ObjectHistory, RenameMode};

/// Number of pasts at which a search is given up.
const LIMIT: usize = 20_000;

type Place = (Ino, Name);

/// The node behind a name: a creation that did not return leaves a node whose number is found
/// later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Named {
    Known(Ino),
    Unknown { is_directory: bool },
}

/// All names.
type Names = Rc<BTreeMap<Place, Named>>;

struct NamesModel {
    directories: BTreeSet<Ino>,
}

/// Result of an operation on a known state.
enum Expected {
    Done(Names),
    Failed(Errno),
}

impl NamesModel {
    fn is_directory(&self, node: Named) -> bool {
        match node {
            Named::Known(ino) => self.directories.contains(&ino),
            Named::Unknown { is_directory } => is_directory,
        }
    }

    /// Returns whether a directory has not been removed.
    fn is_live(names: &Names, directory: Ino) -> bool {
        directory == Ino::ROOT || names.values().any(|node| *node == Named::Known(directory))
    }

    fn is_empty(names: &Names, directory: Named) -> bool {
        let Named::Known(ino) = directory else { return true };
        names.keys().all(|(parent, _)| *parent != ino)
    }

    /// Returns whether a directory is `ancestor` or below it.
    fn is_within(names: &Names, directory: Ino, ancestor: Named) -> bool {
        let mut at = directory;
        for _ in 0..=names.len() {
            if ancestor == Named::Known(at) {
                return true;
            }
            match names.iter().find(|(_, node)| **node == Named::Known(at)) {
                Some(((parent, _), _)) => at = *parent,
                None => return false,
            }
        }
        false
    }

    fn create(names: &Names, at: &Place, node: Named) -> Expected {
        if !Self::is_live(names, at.0) {
            return Expected::Failed(Errno::NOENT);
        }
        if names.contains_key(at) {
            return Expected::Failed(Errno::EXIST);
        }
        let mut names = names.to_map();
        names.insert(at.clone(), node);
        Expected::Done(Rc::new(names))
    }

    fn remove(&self, names: &Names, at: &Place, is_directory: bool) -> Expected {
        let Some(node) = names.get(at).copied() else { return Expected::Failed(Errno::NOENT) };
        match (is_directory, self.is_directory(node)) {
            (true, false) => return Expected::Failed(Errno::NOTDIR),
            (false, true) => return Expected::Failed(Errno::ISDIR),
            (true, true) if !Self::is_empty(names, node) => {
                return Expected::Failed(Errno::NOTEMPTY);
            }
            _ => {}
        }
        let mut names = names.to_map();
        names.remove(at);
        Expected::Done(Rc::new(names))
    }

    fn rename(&self, names: &Names, from: &Place, to: &Place, mode: RenameMode) -> Expected {
        if !Self::is_live(names, to.0) {
            return Expected::Failed(Errno::NOENT);
        }
        let Some(source) = names.get(from).copied() else { return Expected::Failed(Errno::NOENT) };
        let target = names.get(to).copied();
        let exchange = mode == RenameMode::Exchange;
        match (target, mode) {
            (Some(_), RenameMode::NoReplace) => return Expected::Failed(Errno::EXIST),
            (None, RenameMode::Exchange) => return Expected::Failed(Errno::NOENT),
            _ => {}
        }
        if from == to || (target == Some(source) && matches!(source, Named::Known(_))) {
            return Expected::Done(Rc::clone(names));
        }
        if Self::is_within(names, to.0, source) {
            return Expected::Failed(Errno::INVAL);
        }
        if let Some(target) = target {
            if Self::is_within(names, from.0, target) {
                return Expected::Failed(if exchange { Errno::INVAL } else { Errno::NOTEMPTY });
            }
            match (self.is_directory(source), self.is_directory(target)) {
                _ if exchange => {}
                (true, false) => return Expected::Failed(Errno::NOTDIR),
                (false, true) => return Expected::Failed(Errno::ISDIR),
                (true, true) if !Self::is_empty(names, target) => {
                    return Expected::Failed(Errno::NOTEMPTY);
                }
                _ => {}
            }
        }
        let mut names = names.to_map();
        names.remove(from);
        if let Some(target) = target.filter(|_| exchange) {
            names.insert(from.clone(), target);
        }
        names.insert(to.clone(), source);
        Expected::Done(Rc::new(names))
    }

    /// Returns the states in which a directory has these names; unknown nodes get their numbers.
    fn list(&self, names: &Names, directory: Ino, found: &[(Name, Ino)]) -> Vec<Names> {
        let expected: Vec<_> = names
            .iter()
            .filter(|((parent, _), _)| *parent == directory)
            .map(|((_, name), node)| (name, *node))
            .collect();
        if expected.len() != found.len() {
            return Vec::new();
        }
        let mut bound = Rc::clone(names);
        for ((expected, _), (name, ino)) in expected.into_iter().zip(found) {
            if expected != name {
                return Vec::new();
            }
            match self.bind(&bound, &(directory, name.clone()), *ino) {
                Some(names) => bound = names,
                None => return Vec::new(),
            }
        }
        vec![bound]
    }

    /// Returns the state after a name was found to lead to a node.
    fn bind(&self, names: &Names, at: &Place, ino: Ino) -> Option<Names> {
        match names.get(at)? {
            Named::Known(known) => (*known == ino).then(|| Rc::clone(names)),
            Named::Unknown { is_directory } => {
                let is_free = names.values().all(|node| *node != Named::Known(ino));
                (is_free && *is_directory == self.directories.contains(&ino)).then(|| {
                    let mut bound = names.to_map();
                    bound.insert(at.clone(), Named::Known(ino));
                    Rc::new(bound)
                })
            }
        }
    }
}

trait ToMap {
    fn to_map(&self) -> BTreeMap<Place, Named>;
}

impl ToMap for Names {
    fn to_map(&self) -> BTreeMap<Place, Named> {
        BTreeMap::clone(self)
    }
}

/// Returns the states that a result permits.
fn judge(names: &Names, expected: Expected, result: Option<Result<(), Errno>>) -> Vec<Names> {
    match (expected, result) {
        (Expected::Done(names), None | Some(Ok(()))) => vec![names],
        (Expected::Failed(_), None) => vec![Rc::clone(names)],
        (Expected::Failed(expected), Some(Err(found))) if same(expected, found) => {
            vec![Rc::clone(names)]
        }
        (Expected::Done(_), Some(Err(_))) | (Expected::Failed(_), Some(_)) => Vec::new(),
    }
}

/// Returns whether a result is the expected one. A directory that was removed is absent to one
/// kernel and stale to another.
fn same(expected: Errno, found: Errno) -> bool {
    expected == found || (expected == Errno::NOENT && found == Errno::STALE)
}

impl Model for NamesModel {
    type State = Names;
    type Action = NameAction;

    fn apply(&self, names: &Names, action: &NameAction) -> Vec<Names> {
        match action {
            NameAction::Create { at, is_directory, result } => {
                let node = match result {
                    Some(Ok(ino)) => Named::Known(*ino),
                    Some(Err(_)) | None => Named::Unknown { is_directory: *is_directory },
                };
                judge(names, Self::create(names, at, node), result.map(|done| done.map(drop)))
            }
            NameAction::Link { node, at, result } => {
                let may_be = |named: &Named| match named {
                    Named::Known(ino) => ino == node,
                    Named::Unknown { is_directory } => !is_directory,
                };
                // A file that has lost its last name gets no other.
                let expected = match result {
                    Some(Err(found)) if *found == Errno::EXIST => {
                        Self::create(names, at, Named::Known(*node))
                    }
                    _ if !names.values().any(may_be) => Expected::Failed(Errno::NOENT),
                    _ => Self::create(names, at, Named::Known(*node)),
                };
                judge(names, expected, *result)
            }
            NameAction::Remove { at, is_directory, result } => {
                judge(names, self.remove(names, at, *is_directory), *result)
            }
            NameAction::Rename { from, to, mode, result } => {
                let expected = self.rename(names, from, to, *mode);
                // The order of several errors is unspecified.
                let kinds = [Errno::INVAL, Errno::NOTDIR, Errno::ISDIR, Errno::NOTEMPTY];
                match (&expected, result) {
                    (Expected::Failed(expected), Some(Err(found)))
                        if kinds.contains(expected) && kinds.contains(found) =>
                    {
                        vec![Rc::clone(names)]
                    }
                    _ => judge(names, expected, *result),
                }
            }
            NameAction::LookUp { at, result } => match result {
                None => vec![Rc::clone(names)],
                Some(Ok(Some(ino))) => self.bind(names, at, *ino).into_iter().collect(),
                Some(Ok(None)) if !names.contains_key(at) => vec![Rc::clone(names)],
                Some(Err(found)) if same(Errno::NOENT, *found) && !Self::is_live(names, at.0) => {
                    vec![Rc::clone(names)]
                }
                Some(Ok(None) | Err(_)) => Vec::new(),
            },
            NameAction::List { directory, result } => match result {
                None => vec![Rc::clone(names)],
                Some(Ok(found)) => self.list(names, *directory, found),
                Some(Err(found))
                    if same(Errno::NOENT, *found) && !Self::is_live(names, *directory) =>
                {
                    vec![Rc::clone(names)]
                }
                Some(Err(_)) => Vec::new(),
            },
        }
    }

    fn only_reads(&self, action: &NameAction) -> bool {
        match action {
            // Either may find out the number of a node; the search sees that the state changes.
            NameAction::LookUp { .. } | NameAction::List { .. } => true,
            NameAction::Create { result, .. } => matches!(result, Some(Err(_))),
            NameAction::Link { result, .. }
            | NameAction::Remove { result, .. }
            | NameAction::Rename { result, .. } => matches!(result, Some(Err(_))),
        }
    }
}

/// Checks the history of all names; the root was empty at the start. `directories` are the
/// directories that a creation without a response may have made. Returns whether the search was
/// finished.
///
/// # Errors
///
/// The operation whose result no order explains.
pub fn check(history: &ObjectHistory<NameAction>, directories: &[Ino]) -> Result<bool, Violation> {
    let created = history.iter().filter_map(|event| match &event.action {
        Happening::Action(NameAction::Create {
            is_directory: true, result: Some(Ok(ino)), ..
        }) => Some(*ino),
        _ => None,
    });
    let directories = created.chain([Ino::ROOT]).chain(directories.iter().copied()).collect();
    match search(&NamesModel { directories }, Names::default(), history, LIMIT) {
        Verdict::Linearisable => Ok(true),
        Verdict::Undecided => Ok(false),
        Verdict::Impossible { event } => {
            let what = explain(history, event);
            Err(Violation::new("operations on names are linearisable", what))
        }
    }
}
