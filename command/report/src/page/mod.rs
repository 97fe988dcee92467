//! Pages: self-contained HTML.
//!
//! Every page is one file without external resources, for light and dark schemes. Its security
//! policy forbids the browser to fetch anything, which enforces that.
//!
//! A page's template extends `layout.html` and fills its blocks `title` and `body`; `parts.html`
//! has macros for plots, tables, cards, and the machine. `findings.html` renders the findings of
//! any experiment.

use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::json;

use crate::chart::{self, Plot};
use crate::result::Table;

/// The main figure of a contender, at the top of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// The contender.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// Its figure.
    pub figure: String,
    /// The meaning of the figure, and more figures.
    pub more: String,
}

/// Renders a page from `template`, which names the fields of `page`.
///
/// # Panics
///
/// If the template is malformed, or names an unknown field.
pub fn render(template: &'static str, page: impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.add_filter("sentence", sentence);
    environment.add_global("style", format!("{}{}", chart::STYLE, include_str!("page.css")));
    environment.add_global("script", chart::SCRIPT);
    let templates = [
        ("layout.html", include_str!("layout.html")),
        ("parts.html", include_str!("parts.html")),
        ("page.html", template),
    ];
    for (name, text) in templates {
        environment.add_template(name, text).expect("a constant template");
    }
    let template = environment.get_template("page.html").expect("added above");
    template
        .render(Value::from(Serde(page)))
        .unwrap_or_else(|error| panic!("a template that does not fit its page: {error:#}"))
}

/// Returns the text with its first letter in upper case and the rest unchanged, so that `kB` keeps
/// its meaning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Returns a page with only these plots and tables.
#[must_use]
pub fn of_plots(title: &str, plots: &[Plot], tables: &[Table]) -> String {
    render(include_str!("plots.html"), json!({ "title": title, "plots": plots, "tables": tables }))
}
