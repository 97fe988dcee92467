//! Requirements on the trait of a service, and the error messages.

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::{FnArg, Item, ItemTrait, Pat, TraitItem, TraitItemFn, Type};

/// Reserved names: methods of generated clients.
const RESERVED: [&str; 6] =
    ["new", "with_timeout", "with_metadata", "with_notifications", "notifications", "clone"];

fn error<T>(at: &impl Spanned, message: &str) -> syn::Result<T> {
    Err(syn::Error::new(at.span(), message))
}

/// Returns the trait behind the attribute.
pub(crate) fn parse_trait(tokens: TokenStream) -> syn::Result<ItemTrait> {
    let item: Item = syn::parse2(tokens)?;
    let Item::Trait(item) = item else {
        return error(&item, "`service` makes a service of a trait: put it before `trait`");
    };
    if !item.generics.params.is_empty() {
        let message =
            "a service has no parameters: clients and servers would have to agree on them";
        return error(&item.generics, message);
    }
    if item.unsafety.is_some() {
        return error(&item.unsafety, "a service cannot be `unsafe`: its client is generated");
    }
    if item.items.is_empty() {
        return error(&item.ident, "a service needs at least one method");
    }
    for part in &item.items {
        match part {
            TraitItem::Fn(method) => check_method(method)?,
            other => return error(other, "a service has only methods: `async fn name(&self, …)`"),
        }
    }
    Ok(item)
}

fn check_method(method: &TraitItemFn) -> syn::Result<()> {
    let signature = &method.sig;
    let name = signature.ident.to_string();
    if signature.asyncness.is_none() {
        let message = format!("a method of a service is `async`: write `async fn {name}`");
        return error(&signature.fn_token, &message);
    }
    if RESERVED.contains(&name.as_str()) {
        let message = format!("`{name}` is a method of every client; choose another name");
        return error(&signature.ident, &message);
    }
    if name.len() > 120 {
        return error(&signature.ident, "the name of a method has at most 120 bytes");
    }
    if !signature.generics.params.is_empty() {
        let message =
            "a method of a service has no parameters: its types must be known on both sides";
        return error(&signature.generics, message);
    }
    if let Some(body) = &method.default {
        let message = "a method of a service has no body here: servers implement it";
        return error(body, message);
    }
    let Some(FnArg::Receiver(receiver)) = signature.inputs.first() else {
        let message =
            format!("a method of a service takes `&self` first: `async fn {name}(&self, …)`");
        return error(&signature.ident, &message);
    };
    if receiver.reference.is_none() || receiver.mutability.is_some() {
        let message = "a method of a service takes `&self`: many calls run at a time";
        return error(receiver, message);
    }
    for argument in signature.inputs.iter().skip(1) {
        let FnArg::Typed(argument) = argument else { continue };
        if !matches!(&*argument.pat, Pat::Ident(pattern) if pattern.subpat.is_none()) {
            return error(&argument.pat, "an argument of a service has a name: `name: Type`");
        }
        check_type(&argument.ty)?;
    }
    if let syn::ReturnType::Type(_, result) = &signature.output {
        check_type(result)?;
    }
    Ok(())
}

fn check_type(of: &Type) -> syn::Result<()> {
    match of {
        Type::Reference(_) => error(
            of,
            "arguments and results go to another process: take an owned type, such as `String` for `&str` or `Vec<T>` for `&[T]`",
        ),
        Type::ImplTrait(_) => error(
            of,
            "both sides must know the type: name it, or use `Streaming<T>` for a stream of parts",
        ),
        _ => Ok(()),
    }
}
