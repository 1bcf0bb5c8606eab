"""Endpoints of saved questions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from discreet.server.api_models import AskModel
from discreet.server.app import ApiCall, Endpoint
from discreet.server.saved_questions import LONGEST_TITLE, SavedQuestion, SavedQuestions

__all__ = ["SAVED_ENDPOINTS"]


class SaveQuestionModel(BaseModel):
    """A question as one asks it, and the title that it is saved under."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]
    shared: bool = False
    question: AskModel


class SavedQuestionModel(BaseModel):
    """A saved question. Its title and SQL are texts that somebody typed: show them as text."""

    model_config = ConfigDict(extra="forbid")

    id: str
    dataset: str
    who: str
    title: str
    sql: str
    offer: dict[str, Any]
    shared: bool
    at: float


class SavedQuestionsModel(BaseModel):
    """The saved questions of a data set: one's own and those that others share, the newest first."""

    model_config = ConfigDict(extra="forbid")

    questions: list[SavedQuestionModel]


class DeletedQuestionModel(BaseModel):
    """A question that is no longer kept."""

    model_config = ConfigDict(extra="forbid")

    deleted: str


def _document(found: SavedQuestion) -> dict[str, Any]:
    return {
        "id": found.id,
        "dataset": found.dataset,
        "who": found.name,
        "title": found.title,
        "sql": found.question.sql,
        "offer": dict(found.question.offer),
        "shared": found.shared,
        "at": found.at,
    }


def _listed(call: ApiCall) -> Any:
    found = SavedQuestions(call.server.state).of_dataset(call.caller, call.path["dataset"], most=call.most)
    return {"questions": [_document(one) for one in found]}


def _saved(call: ApiCall) -> Any:
    body: SaveQuestionModel = call.body
    saved, question = SavedQuestions(call.server.state), body.question.question()
    return _document(saved.save(call.caller, call.path["dataset"], body.title, question, shared=body.shared))


def _one(call: ApiCall) -> Any:
    saved = SavedQuestions(call.server.state)
    return _document(saved.get(call.caller, call.path["dataset"], call.path["question"]))


def _deleted(call: ApiCall) -> Any:
    number = call.path["question"]
    SavedQuestions(call.server.state).delete(call.caller, call.path["dataset"], number)
    return {"deleted": number}


_QUESTIONS = "/v1/datasets/{dataset}/questions"
SAVED_ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_QUESTIONS,
        operation="questions",
        handler=_listed,
        summary="Saved questions: one's own and those that are shared, the newest first",
        answer=SavedQuestionsModel,
        query=("limit",),
    ),
    Endpoint(
        method="POST",
        path=_QUESTIONS,
        operation="save",
        handler=_saved,
        summary="Save a question under a title. Free; no row is read",
        body=SaveQuestionModel,
        answer=SavedQuestionModel,
    ),
    Endpoint(
        method="GET",
        path=_QUESTIONS + "/{question}",
        operation="questions",
        handler=_one,
        summary="A saved question",
        answer=SavedQuestionModel,
    ),
    Endpoint(
        method="DELETE",
        path=_QUESTIONS + "/{question}",
        operation="save",
        handler=_deleted,
        summary="Delete a saved question of one's own; an owner may delete what others share",
        answer=DeletedQuestionModel,
    ),
)
