"""Which tokenizer: by name, learned from a text; of a pretrained model, from a file; and what is refused."""

import sys

from mini_tf.errors import UserError
from mini_tf.text import (
    BytePairVocabulary,
    CharacterVocabulary,
    HubVocabulary,
    LlamaVocabulary,
    Vocabulary,
    new_tokenizer,
    open_tokenizer,
)
from tests.text.test_llama2c import SMALL

import pytest
from hypothesis import given
from hypothesis import strategies as st

LLAMA_PIECES = ["<unk>", "<s>", "</s>", *SMALL.words[3:259], "▁", "a", "b", "ab", "▁ab"]


def test_tokenizers_by_name():
    text = "to be, or not to be"
    assert new_tokenizer("words", text, "").words == ["to", "be", ",", "or", "not"]
    assert new_tokenizer("characters", text, "").words == list("to be,rn")
    learned = new_tokenizer("bpe:260", text, "to be to be")
    assert isinstance(learned, BytePairVocabulary)
    assert learned.words[256:] == ["be", "to", "Ġbe"]    # that ", or not" is in the text, it has not been told


@pytest.mark.parametrize("name", ["word", "", "bpe", "bpe:", "bpe:-1", "bpe:1e3", "bpe:5.0", "BPE:512", None, 7])
def test_other_names_are_refused(name):
    with pytest.raises(UserError, match="expected words, characters, a file or, with a number of pieces, bpe:512"):
        new_tokenizer(name, "", "")


@pytest.mark.parametrize("number", [0, 255, 100_001, 10**8])
def test_numbers_of_pieces_that_are_refused(number):
    with pytest.raises(UserError, match=f"the N of tokenizer=bpe:N is {number}, expected"):
        new_tokenizer(f"bpe:{number}", "", "")


@given(st.text(max_size=40) | st.text("aé\r\n \ud800\u0301", max_size=40))
def test_characters_of_any_text_survive_the_round_trip(text):
    vocabulary = CharacterVocabulary(text)
    assert vocabulary.decode(vocabulary.encode(vocabulary.split(text))) == text
    assert list(vocabulary.stream(vocabulary.split(text))) == list(text)
    assert len(vocabulary) == len(set(text))


def test_every_kind_has_a_name_a_unit_and_content_that_makes_it_again():
    for vocabulary, kind, unit in (
        (Vocabulary(["a", "b"]), "words", "word"), (CharacterVocabulary("ab"), "characters", "character"),
        (BytePairVocabulary([("a", "b")]), "byte pairs", "piece"), (SMALL, "llama2.c", "piece"),
    ):  # fmt: skip
        assert (vocabulary.kind, vocabulary.unit) == (kind, unit)
        assert type(vocabulary).of(vocabulary.content).words == vocabulary.words
        assert f" {len(vocabulary)} {unit}s" in repr(vocabulary)


def byte_level():
    """A tokenizer as GPT-2's is made: 256 bytes, no merges, <|endoftext|> at the end"""
    tokenizers = pytest.importorskip("tokenizers")
    ids = {character: i for i, character in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    return made


def llamas():
    """A tokenizer as Llama's is made: a space in front, <s> at the start, bytes for unknown characters"""
    tokenizers = pytest.importorskip("tokenizers")
    normalizers, decoders = tokenizers.normalizers, tokenizers.decoders
    made = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab={piece: i for i, piece in enumerate(LLAMA_PIECES)}, merges=[("a", "b"), ("▁", "ab")], unk_token="<unk>",
        fuse_unk=True, byte_fallback=True,
    ))  # fmt: skip
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def test_a_tokenizer_json_says_where_texts_begin_and_end():
    gpt2, llama = (HubVocabulary(made.to_str()) for made in (byte_level(), llamas()))
    assert (gpt2.first, gpt2.end, len(gpt2)) == (None, 256, 257)
    assert (llama.first, llama.end, len(llama)) == (1, 2, len(LLAMA_PIECES))
    assert llama.split("ab cab") == ["▁ab", "▁", "<0x63>", "ab"]
    assert HubVocabulary(byte_level().to_str(), "a").end == gpt2.index["a"]
    assert HubVocabulary.of(llama.content).content == llama.content


@pytest.mark.parametrize("make", [byte_level, llamas])
def test_any_text_survives_a_tokenizer_json(make):
    vocabulary = HubVocabulary(make().to_str())

    @given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=30))
    def survives(text):
        tokens = vocabulary.split(text)
        ids = vocabulary.encode(tokens)
        assert vocabulary.decode(ids) == vocabulary.join(tokens) == text
        assert "".join(vocabulary.stream(tokens)) == vocabulary.decode(ids)

    survives()


def test_characters_come_whole():
    vocabulary = HubVocabulary(byte_level().to_str())
    assert list(vocabulary.stream(vocabulary.split("é😀"))) == ["", "é", "", "", "", "😀"]
    vocabulary = HubVocabulary(llamas().to_str())
    assert list(vocabulary.stream(["<s>", *vocabulary.split("ab ab")])) == ["", "ab", " ab"]


def test_a_folder_is_searched_for_its_tokenizer_json(tmp_path):
    (tmp_path / "tokenizer.json").write_text(byte_level().to_str(), encoding="utf-8")
    assert open_tokenizer(tmp_path, 257).end == 256
    for says in ('{"eos_token": "b"}', '{"eos_token": {"content": "b"}}'):
        (tmp_path / "tokenizer_config.json").write_text(says)
        found = open_tokenizer(tmp_path / "tokenizer.json")
        assert found.end == found.index["b"]
    for says in ("[1]", "{", '{"eos_token": null}', '{"eos_token": 7}'):
        (tmp_path / "tokenizer_config.json").write_text(says)
        assert open_tokenizer(tmp_path).end == 256


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    SMALL.save(tmp_path / "tok.bin")
    assert isinstance(open_tokenizer(tmp_path / "tok.bin", len(SMALL)), LlamaVocabulary)
    with pytest.raises(UserError, match=r"tok.bin has 267 tokens and the model 32,000, expected as many"):
        open_tokenizer(tmp_path / "tok.bin", 32_000)


def test_files_that_are_no_tokenizers(tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*none.bin; a tokenizer is llama2.c's tokenizer.bin or"):
        open_tokenizer(tmp_path / "none.bin")
    with pytest.raises(UserError, match=r"there is no file .*tokenizer.json"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(UserError, match=r"tokenizer.json cannot be read: it is a folder, expected a file"):
        open_tokenizer(tmp_path)
    with pytest.raises(UserError, match="cannot be read: embedded null"):
        open_tokenizer("a\0b")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"model": {"type": "BPE"}}'])
def test_texts_that_are_no_tokenizer_json(tmp_path, content):
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer.json cannot be read: it is no tokenizer.json \("):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [None, [], {"tokenizer": 1}, {"tokenizer": 1, "end": None}])
def test_what_vocabulary_json_cannot_hold(content):
    pytest.importorskip("tokenizers")
    with pytest.raises(UserError):
        HubVocabulary.of(content)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"pip install 'mini-tf\[hub\]'"):
        HubVocabulary("{}")


def test_half_a_surrogate_pair_is_read_as_replacement_characters():
    vocabulary = HubVocabulary(byte_level().to_str())
    assert vocabulary.join(vocabulary.split("a\ud800b")) == "a���b"
