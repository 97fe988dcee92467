//! Import order: checks that the modules of a crate form layers. For tests.
//!
//! A test lists the modules of each folder from the lowest layer to the highest. A module may import, through
//! `crate::` or `super::`, modules that are listed before it and modules that it contains.
//! [`violations`] reports every other import, so circles of files cannot exist:
//!
//! - **LAYERS-1**: No module imports a module that is listed after it.
//! - **LAYERS-2**: No module imports from a module that contains it. An item is imported from the file that defines it.
//! - **LAYERS-3**: Every module of the crate is listed.
//!
//! The check reads source text, so macros are not expanded. Test code is exempt: a file ends, for this check, at its
//! first `#[cfg(test)]` on a line of its own, and files named `tests.rs` are skipped.

use std::fs;
use std::path::Path;

/// The modules of one folder, from the lowest layer to the highest.
///
/// The first field is the module path of the folder, empty for the crate's root and `a::b` for `src/a/b`.
pub type Layer<'a> = (&'a str, &'a [&'a str]);

/// An import: the module that contains it, the line from 1, and the path that it names from the crate's root.
type Import = (Vec<String>, usize, Vec<String>);

/// Returns a line of text for each import in `src` that breaks `order`, and for each module that `order` lacks.
///
/// # Panics
///
/// `src` cannot be read.
#[must_use]
pub fn violations(src: &Path, order: &[Layer<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut imports = Vec::new();
    read_folder(src, &[], order, &mut found, &mut imports);
    for (module, line, target) in imports {
        let at = || format!("{}:{line}: imports {}", module.join("::"), target.join("::"));
        let common = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
        if common == module.len() {
            continue;
        }
        let folder = module[..common].join("::");
        let listed =
            order.iter().find(|(name, _)| *name == folder).map_or(&[][..], |(_, list)| list);
        let rank = |name: &String| listed.iter().position(|each| each == name);
        match (rank(&module[common]), target.get(common).and_then(rank)) {
            (Some(own), Some(other)) if other < own => {}
            (Some(_), Some(_)) => found.push(format!("{}, a higher layer", at())),
            _ => found.push(format!("{}, which contains it", at())),
        }
    }
    found
}

/// Reads the modules of a folder, and those below it.
fn read_folder(
    folder: &Path,
    path: &[String],
    order: &[Layer<'_>],
    found: &mut Vec<String>,
    imports: &mut Vec<Import>,
) {
    let entries = fs::read_dir(folder).expect("the source can be read");
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_file = entry.extension().is_some_and(|extension| extension == "rs");
        let is_root = matches!(name.as_str(), "mod" | "lib" | "main");
        if name == "tests" || !(is_file || entry.is_dir()) {
            continue;
        }
        let mut module = path.to_vec();
        if !(is_file && is_root) {
            let listed = order
                .iter()
                .any(|(each, list)| *each == path.join("::") && list.contains(&name.as_str()));
            let has_source =
                is_file || entry.join("mod.rs").exists() || entry.with_extension("rs").exists();
            if !has_source {
                continue;
            }
            module.push(name);
            if !listed {
                found.push(format!("{} is in no layer", module.join("::")));
            }
        }
        if is_file {
            let text = fs::read_to_string(&entry).expect("a source file is text");
            read_imports(&text, &module, imports);
        } else {
            read_folder(&entry, &module, order, found, imports);
        }
    }
}

/// Collects what a file names through `crate::` and `super::`.
fn read_imports(text: &str, module: &[String], imports: &mut Vec<Import>) {
    let tokens = tokens(text);
    let mut at = 0;
    while at < tokens.len() {
        let (line, ref word) = tokens[at];
        let is_visibility = at > 0 && tokens[at - 1].1 == "in";
        let begins_path = tokens.get(at + 1).is_some_and(|(_, next)| next == "::");
        at += 1;
        if is_visibility || !begins_path || !matches!(word.as_str(), "crate" | "super") {
            continue;
        }
        at -= 1;
        let mut base = module.to_vec();
        if word == "crate" {
            base.clear();
            at += 1;
        } else {
            while tokens.get(at).is_some_and(|(_, word)| word == "super") {
                base.pop();
                at += 1;
                if tokens.get(at + 1).is_some_and(|(_, word)| word == "super") {
                    at += 1;
                }
            }
        }
        let mut targets = Vec::new();
        at = read_tree(&tokens, at, &base, &mut targets);
        imports.extend(targets.into_iter().map(|target| (module.to_vec(), line, target)));
    }
}

/// Reads what follows a path, from its `::` on: names, or a list of paths in braces. Returns the index behind it.
fn read_tree(
    tokens: &[(usize, String)],
    mut at: usize,
    base: &[String],
    targets: &mut Vec<Vec<String>>,
) -> usize {
    let word = |at: usize| tokens.get(at).map_or("", |(_, word)| word.as_str());
    let mut path = base.to_vec();
    while word(at) == "::" {
        at += 1;
        if word(at) == "{" {
            at += 1;
            while !matches!(word(at), "}" | "") {
                let mut inner = path.clone();
                if !matches!(word(at), "," | "self") {
                    inner.push(word(at).to_owned());
                    at = read_tree(tokens, at + 1, &inner, targets);
                    continue;
                }
                if word(at) == "self" {
                    targets.push(inner);
                }
                at += 1;
            }
            return at + 1;
        }
        path.push(word(at).to_owned());
        at += 1;
    }
    if word(at) == "as" {
        at += 2;
    }
    targets.push(path);
    at
}

/// Splits a file into names, `::` and single characters, with the number of the line from 1. Comments and test code
/// are left out.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        let mut rest = code.trim_start();
        while let Some(first) = rest.chars().next() {
            let name =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let length = match name {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                name => name,
            };
            tokens.push((number + 1, rest[..length].to_owned()));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The violations in a crate with these files.
    fn check(files: &[(&str, &str)], order: &[Layer<'_>]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        violations(folder.path(), order)
    }

    const ORDER: [Layer<'static>; 2] = [("", &["low", "high"]), ("high", &["one", "two"])];

    #[test]
    fn imports_of_lower_layers_are_accepted() {
        let files = [
            ("lib.rs", "mod low; mod high; pub use high::two;"),
            ("low.rs", "// use crate::high;\n#[cfg(test)]\nuse crate::high;"),
            ("high/mod.rs", "use crate::low::{A, B};\npub(in crate::high) use self::one::C;"),
            ("high/one.rs", "use crate::low;"),
            ("high/two.rs", "use super::one::{self, C as D};\nfn f() { super::super::low::g() }"),
            ("high/tests.rs", "use super::two;"),
        ];
        assert_eq!(check(&files, &ORDER), [""; 0]);
    }

    #[test]
    fn imports_of_higher_layers_and_of_containing_modules_are_reported() {
        let files = [
            ("low.rs", "use crate::{low::A,\n    high::{one::B, two::C}};"),
            ("high/mod.rs", ""),
            ("high/one.rs", "use super::two;\n\nuse super::{D, one};\nuse crate::E;"),
            ("high/two.rs", ""),
        ];
        let expected = [
            "high::one:1: imports high::two, a higher layer",
            "high::one:3: imports high::D, which contains it",
            "high::one:4: imports E, which contains it",
            "low:1: imports high::one::B, a higher layer",
            "low:1: imports high::two::C, a higher layer",
        ];
        assert_eq!(check(&files, &ORDER), expected);
    }

    #[test]
    fn a_module_that_is_not_listed_is_reported() {
        assert_eq!(check(&[("new.rs", "")], &ORDER), ["new is in no layer"]);
    }
}
