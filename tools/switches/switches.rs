//! Puts mutants of cargo-mutants into sources, each behind a switch, so that one build holds all of them.
//!
//! Standard input: a JSON list of `{"id", "file", "genre", "span", "replacement"}`; `span` counts lines and columns from 1.
//! The files are changed in place. Standard output: the JSON list of the ids that have no place here, such as those in
//! constants. What a mutant changes stands between `/*<id*/` and `/*id>*/`.

use proc_macro2::{LineColumn, Span};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use syn::{spanned::Spanned, visit::Visit};

/// What is put before and behind a range of a source.
struct Around {
    from: usize,
    to: usize,
    before: String,
    behind: String,
}

/// A source, and the mutants that it is still to get, by the range that they replace.
struct Source<'a> {
    text: &'a str,
    lines: Vec<usize>,
    switch: &'a str,
    left: HashMap<(usize, usize), Vec<(u64, &'a str)>>,
    put: Vec<Around>,
}

impl<'a> Source<'a> {
    /// The byte at a line and a column of characters, counted from 1.
    fn byte(&self, line: usize, column: usize) -> usize {
        let start = self.lines[line - 1];
        self.text[start..].char_indices().nth(column - 1).map_or(self.text.len(), |(n, _)| start + n)
    }

    fn at(&self, place: LineColumn) -> usize {
        self.byte(place.line, place.column + 1)
    }

    fn range(&self, span: Span) -> (usize, usize) {
        (self.at(span.start()), self.at(span.end()))
    }

    /// Mutants of the range `what` put around the range `whole` of an expression, by what stands there with the mutant.
    fn around(&mut self, what: (usize, usize), (from, to): (usize, usize)) {
        for (id, new) in self.left.remove(&what).unwrap_or_default() {
            let mutated = format!("{}{new}{}", &self.text[from..what.0], &self.text[what.1..to]);
            let before = format!("/*<{id}*/(if {}({id}) {{{mutated}}} else {{", self.switch);
            self.put.push(Around { from, to, before, behind: format!("}})/*{id}>*/") });
        }
    }

    /// A body of a function that can return early: its type is named.
    fn body(&mut self, output: &syn::ReturnType, body: &syn::Block) {
        let mut is_named = IsNamed(true);
        is_named.visit_return_type(output);
        if !is_named.0 {
            return;
        }
        let (Some(first), Some(last)) = (body.stmts.first(), body.stmts.last()) else { return };
        let (from, to) = (self.range(first.span()).0, self.range(last.span()).1);
        for (id, new) in self.left.remove(&(from, to)).unwrap_or_default() {
            let before = format!("/*<{id}*/if {}({id}) {{ return {new}; }}/*{id}>*/", self.switch);
            self.put.push(Around { from, to: to + 1, before, behind: String::new() });
        }
    }
}

/// Whether a type is named, not `impl`.
struct IsNamed(bool);

impl<'ast> Visit<'ast> for IsNamed {
    fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
        self.0 = false;
    }
}

impl<'ast> Visit<'ast> for Source<'_> {
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_item_fn(&mut self, one: &'ast syn::ItemFn) {
        if one.sig.constness.is_none() {
            self.body(&one.sig.output, &one.block);
            syn::visit::visit_item_fn(self, one);
        }
    }

    fn visit_impl_item_fn(&mut self, one: &'ast syn::ImplItemFn) {
        if one.sig.constness.is_none() {
            self.body(&one.sig.output, &one.block);
            syn::visit::visit_impl_item_fn(self, one);
        }
    }

    fn visit_trait_item_fn(&mut self, one: &'ast syn::TraitItemFn) {
        if let Some(body) = &one.default {
            self.body(&one.sig.output, body);
        }
        syn::visit::visit_trait_item_fn(self, one);
    }

    fn visit_expr_binary(&mut self, one: &'ast syn::ExprBinary) {
        self.around(self.range(one.op.span()), self.range(one.span()));
        syn::visit::visit_expr_binary(self, one);
    }

    fn visit_expr_unary(&mut self, one: &'ast syn::ExprUnary) {
        self.around(self.range(one.op.span()), self.range(one.span()));
        syn::visit::visit_expr_unary(self, one);
    }

    fn visit_expr_struct(&mut self, one: &'ast syn::ExprStruct) {
        let whole = self.range(one.span());
        for field in &one.fields {
            let (from, to) = self.range(field.span());
            let comma = self.text[to..].find(',').map_or(to, |n| to + n + 1);
            self.around((from, to), whole);
            self.around((from, comma), whole);
        }
        syn::visit::visit_expr_struct(self, one);
    }

    fn visit_arm(&mut self, one: &'ast syn::Arm) {
        let whole = self.range(one.span());
        let guard = one.guard.as_ref().map(|(_, guard)| self.range(guard.span()));
        if let Some(guard) = guard {
            self.around(guard, guard);
        }
        let (from, to) = guard.unwrap_or_else(|| self.range(one.pat.span()));
        for (id, _) in self.left.remove(&whole).unwrap_or_default() {
            let is_off = format!("!{}({id})", self.switch);
            let (before, behind) = match guard {
                Some(_) => (format!("/*<{id}*/{is_off} && ("), format!(")/*{id}>*/")),
                None => (format!("/*<{id}*/"), format!(" if {is_off}/*{id}>*/")),
            };
            self.put.push(Around { from, to, before, behind });
        }
        syn::visit::visit_arm(self, one);
    }
}

/// A source with its mutants, and the ids that have no place.
fn switched(text: &str, mutants: &[&Value], switch: &str) -> (String, Vec<u64>) {
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(n, _)| n + 1)).collect();
    let mut source = Source { text, lines, switch, left: HashMap::new(), put: Vec::new() };
    for one in mutants {
        let place = |end: &str| {
            let of = |axis: &str| one["span"][end][axis].as_u64().expect("a span") as usize;
            source.byte(of("line"), of("column"))
        };
        let range = (place("start"), place("end"));
        let new = one["replacement"].as_str().expect("a replacement");
        source.left.entry(range).or_default().push((one["id"].as_u64().expect("an id"), new));
    }
    source.visit_file(&syn::parse_file(text).expect("a source of Rust"));
    let mut put = std::mem::take(&mut source.put);
    put.sort_by_key(|one| (one.from, std::cmp::Reverse(one.to))); // what is outside comes first
    let mut out = text.to_owned();
    let mut edits: BTreeMap<usize, (String, String)> = BTreeMap::new();
    for one in &put {
        edits.entry(one.from).or_default().1.push_str(&one.before);
        if !one.behind.is_empty() {
            let behind = &mut edits.entry(one.to).or_default().0;
            *behind = format!("{}{behind}", one.behind);
        }
    }
    for (at, (behind, before)) in edits.into_iter().rev() {
        out.insert_str(at, &format!("{behind}{before}"));
    }
    (out, source.left.into_values().flatten().map(|(id, _)| id).collect())
}

fn main() {
    let mutants: Vec<Value> = serde_json::from_reader(std::io::stdin()).expect("a list of mutants");
    let mut by_file: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for one in &mutants {
        by_file.entry(one["file"].as_str().expect("a file")).or_default().push(one);
    }
    let mut left = Vec::new();
    for (file, mutants) in by_file {
        let text = std::fs::read_to_string(file).expect("the file");
        let (text, without) = switched(&text, &mutants, "tcps_core::mutant::is");
        left.extend(without);
        std::fs::write(file, text).expect("the file is written");
    }
    println!("{}", serde_json::to_string(&left).expect("numbers"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with one mutant, by its genre's range: what stands there, and what it is replaced with.
    fn with(text: &str, old: &str, new: &str) -> (String, Vec<u64>) {
        let at = text.find(old).expect("it is there");
        let place = |n: usize| {
            let line = text[..n].matches('\n').count() + 1;
            let start = text[..n].rfind('\n').map_or(0, |n| n + 1);
            serde_json::json!({ "line": line, "column": text[start..n].chars().count() + 1 })
        };
        let span = serde_json::json!({ "start": place(at), "end": place(at + old.len()) });
        let one = serde_json::json!({ "id": 7, "file": "", "genre": "", "span": span, "replacement": new });
        switched(text, &[&one], "is")
    }

    #[test]
    fn an_operator_takes_its_operands_with_it() {
        let (out, left) = with("fn f() -> i32 { a * b() + c }", "+", "-");
        assert_eq!(out, "fn f() -> i32 { /*<7*/(if is(7) {a * b() - c} else {a * b() + c})/*7>*/ }");
        assert!(left.is_empty());
        assert_eq!(
            with("fn f() { é(!a.b); }", "!", "").0,
            "fn f() { é(/*<7*/(if is(7) {a.b} else {!a.b})/*7>*/); }"
        );
    }

    #[test]
    fn a_body_returns_early() {
        let (out, _) = with("fn f() -> i32 { let a = 1; a }", "let a = 1; a", "0");
        assert_eq!(out, "fn f() -> i32 { /*<7*/if is(7) { return 0; }/*7>*/let a = 1; a }");
    }

    #[test]
    fn an_arm_is_off_by_its_guard() {
        let text = "fn f() { match x { A if b => 1, C(_) => 2, _ => 3 } }";
        assert!(with(text, "A if b => 1,", "").0.contains("A if /*<7*/!is(7) && (b)/*7>*/ => 1,"));
        assert!(with(text, "C(_) => 2,", "").0.contains("/*<7*/C(_) if !is(7)/*7>*/ => 2,"));
        assert!(with(text, "b", "true").0.contains("A if /*<7*/(if is(7) {true} else {b})/*7>*/ => 1,"));
    }

    #[test]
    fn a_field_is_that_of_the_base() {
        let (out, _) = with("fn f() { g(S { a, ..s }) }", "a,", "");
        assert_eq!(out, "fn f() { g(/*<7*/(if is(7) {S {  ..s }} else {S { a, ..s }})/*7>*/) }");
    }

    #[test]
    fn a_constant_has_no_place() {
        for text in ["const A: i32 = b + c;", "const fn f() -> i32 { b + c }"] {
            assert_eq!(with(text, "+", "-"), (text.into(), vec![7]));
        }
        let text = "fn f() -> Option<impl Fn()> { a }";
        assert_eq!(with(text, "a", "None"), (text.into(), vec![7]));
    }
}
